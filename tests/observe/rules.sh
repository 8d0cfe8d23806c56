# SPDX-License-Identifier: Apache-2.0
# Checks the alert rules with promtool, and that rules and dashboard use metrics that exist.
. "$(dirname "$0")/../tap.sh"

shipped=$top_srcdir/packaging/metrics
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

checked() {
	promtool check rules "$shipped/alerts.yml" >"$work/out" 2>&1 || cat "$work/out"
}
tried() {
	cp "$shipped/alerts.yml" "$top_srcdir/tests/observe/alerts_test.yml" "$work"
	promtool test rules "$work/alerts_test.yml" >"$work/out" 2>&1 || cat "$work/out"
}
if command -v promtool >/dev/null; then
	lint "promtool finds no error in the alert rules" checked
	lint "each alert fires in its situation and not before" tried
else
	skipped "promtool finds no error in the alert rules" "promtool is missing: it is in the package prometheus"
	skipped "each alert fires in its situation and not before" "promtool is missing: it is in the package prometheus"
fi

# The manual page has every metric, which tests/integration/metrics.py checks.
unknown() {
	sed -nE 's/^\.It Sy (jobsched_[a-z_]+).*/\1/p' "$top_srcdir/man/jobsched-metrics.7" | sort -u >"$work/known"
	grep -ohE 'jobsched_[a-z_]+' "$shipped/alerts.yml" "$shipped/dashboard.json" |
		sed -E 's/_(bucket|sum|count)$//' | sort -u | comm -23 - "$work/known"
}
lint "alert rules and dashboard use metrics that exist" unknown

untested() {
	sed -nE 's/.*alert: ([A-Za-z]+)$/\1/p' "$shipped/alerts.yml" | while read -r name; do
		grep -q "alertname: $name" "$top_srcdir/tests/observe/alerts_test.yml" || echo "$name has no test"
		grep -q "^\.It Sy $name$" "$top_srcdir/man/jobsched-metrics.7" || echo "$name is not in jobsched-metrics(7)"
	done
}
lint "each alert has a test and is in the manual page" untested

not_json() {
	jq -e '.panels | length > 10' "$shipped/dashboard.json" >/dev/null || echo "the dashboard is not JSON with panels"
}
lint "the dashboard is valid JSON" not_json
finish
