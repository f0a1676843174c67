" SPDX-License-Identifier: MIT
" Substitutions, sort, undo, registers, Vim script lists and dictionaries.
set undolevels=1000
%s/\<\(\a\+\) \(\a\+\)\>/\2 \1/g
g/ki/m0
%sort u
silent! normal! ggVGyGp
undo
redo
let g:tally = {}
for word in split(join(getline(1, '$'), ' '), '\W\+')
    let g:tally[word] = get(g:tally, word, 0) + 1
endfor
let report = map(sort(keys(g:tally)), {_, word -> word . ' ' . g:tally[word]})
for round in range(200)
    call map(report, {_, line -> substitute(line, 'a', 'A', '')})
    let report = reverse(report)
endfor
call writefile(report, 'report')
write! edited
quitall!
