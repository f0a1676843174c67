// SPDX-License-Identifier: MIT
//
// The one source file of a program that brings the inline operators.
#include <hakmem/inline_operators.hpp>
