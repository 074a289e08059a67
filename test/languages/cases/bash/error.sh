set -u
echo "${boom}"
