# SPDX-License-Identifier: MIT
# Arrays, subshells, pipes, here-documents, process substitution, traps, many forks.
set -euo pipefail

declare -A count
words=()
for i in $(seq 1 4000); do
    word="w$((i * 7919 % 613))"
    words+=("$word")
    count[$word]=$((${count[$word]:-0} + 1))
done
echo "distinct ${#count[@]} of ${#words[@]}"
printf '%s\n' "${words[@]}" | sort | uniq -c | sort -k1,1nr -k2 | sed -n 1,5p

text=""
for i in $(seq 1 3000); do text+="line $i of a growing string;"; done
echo "length ${#text} ${text:1000:20} ${text//line/row}" | cksum

sum=0
for i in $(seq 1 300); do sum=$((sum + $(echo $((i * i))))); done
echo "forks $sum"

{ diff <(seq 1 1000) <(seq 1 2 1000) || true; } | wc -l
total() { seq "$1" | paste -sd+ | awk -F+ '{ s = 0; for (j = 1; j <= NF; j++) s += $j; print s }'; }
(for i in 1 2 3 4; do total $((i * 1000)) & done; wait) | sort -n

recurse() { if (($1 > 0)); then recurse $(($1 - 1)); else echo "deep ${#FUNCNAME[@]}"; fi; }
recurse 500

trap 'echo "trap $?"' EXIT
mapfile -t lines < <(seq 1 20000)
echo "mapfile ${#lines[@]} ${lines[19999]}"
cat <<END | tr a-z A-Z
here document $((6 * 7)) ${words[*]:0:5}
END
[[ "abc123def" =~ ([a-z]+)([0-9]+) ]] && echo "regex ${BASH_REMATCH[2]}"
exit 0
