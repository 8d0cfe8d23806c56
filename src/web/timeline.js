// SPDX-License-Identifier: Apache-2.0
// Past runs and future slots on one axis. A canvas shows the picture, a table says the peaks in words.
import {get, iso, pages} from './api.js';
import {go, refresh} from './app.js';
import {at, button, count, duration, fill, h, jobLink, section, table, time, when, zone} from './dom.js';

const MINUTE = 60e3, HOUR = 3600e3, DAY = 86400e3;
const RANGES = [['1 min', MINUTE], ['10 min', 10 * MINUTE], ['1 h', HOUR], ['6 h', 6 * HOUR], ['1 day', DAY], ['1 week', 7 * DAY], ['1 month', 31 * DAY]];
const STEPS = [1e3, 5e3, 15e3, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 7 * DAY];
const RUNS_MAX = 3000, PEAKS = 24, LANES = 40, LANE = 18, TOP = 96, LEFT = 150;

export async function timeline(box, context, path, query) {
	const canvas = h('canvas', {tabindex: 0, role: 'img'}), info = h('p.dim', {role: 'status'}), peaks = h('div'), range = h('div.row');
	let span = Number(query.span) || 6 * HOUR, middle = query.at ? Number(query.at) : Date.now(), moving = !query.at;
	let runs = [], slots = [], cut = '', lanes = [], spots = [], controller, counted = null, total = 0, whole = true;
	fill(box, h('div.head', h('h1', 'Timeline'), range), section('Runs and slots', canvas, info), peaks);

	const from = () => middle - span / 2, to = () => middle + span / 2;
	function move(part) {
		if (part.span)
			span = Math.min(62 * DAY, Math.max(MINUTE, part.span));
		if (part.by) {
			middle += part.by;
			moving = false;
		}
		if (part.now) {
			middle = Date.now();
			moving = true;
		}
		draw();
		clearTimeout(move.timer);
		move.timer = setTimeout(() => go('timeline', {span: Math.round(span), at: moving ? undefined : Math.round(middle)}, true), 300);
	}
	fill(range, button('◂', () => move({by: -span / 3}), {'aria-label': 'earlier'}), button('Now', () => move({now: true})), button('▸', () => move({by: span / 3}), {'aria-label': 'later'}),
		button('+', () => move({span: span / 2}), {'aria-label': 'zoom in'}), button('−', () => move({span: span * 2}), {'aria-label': 'zoom out'}),
		RANGES.map(([label, ms]) => button(label, () => move({span: ms}), {class: 'small'})));

	// Reads all runs of a range, or some of each part of it if they are many.
	async function read(since, until, counts, width, signal) {
		whole = total <= RUNS_MAX;
		if (whole)
			return (await pages('runs', 'runs', {since: iso(since), until: iso(until)}, RUNS_MAX, signal)).rows;
		const parts = [], k = counts.length / PEAKS;
		for (let i = 0; i < PEAKS; i++)
			if (counts.slice(i * k, (i + 1) * k).some(c => c.runs))
				parts.push(get('runs', {since: iso(since + i * k * width), until: iso(since + (i + 1) * k * width), limit: RUNS_MAX / PEAKS}, signal));
		return (await Promise.all(parts)).flatMap(p => p.runs);
	}

	async function load() {
		controller?.abort();
		controller = new AbortController();
		const now = Date.now(), signal = controller.signal;
		if (moving)
			middle = now;
		const start = from(), stop = to(), n = PEAKS * Math.max(1, Math.round(canvas.parentNode.clientWidth / 6 / PEAKS)), width = span / n;
		const counts = Array.from({length: n}, () => ({runs: 0, failed: 0, next: 0}));
		const ask = [get('density', {since: iso(start), until: iso(stop), intervals: n}, signal),
			stop > now ? get('forecast', {since: iso(Math.max(now, start)), until: iso(stop), limit: 300}, signal) : {jobs: [], complete: true}];
		const [d, f] = await Promise.all(ask);
		for (const c of d.intervals)
			Object.assign(counts[c.interval], c);
		total = d.intervals.reduce((sum, c) => sum + c.runs, 0);
		const rows = await read(start, stop, counts, width, signal);
		if (context.ended)
			return;
		runs = rows;
		const planned = new Set(runs.filter(r => r.state === 'queued').map(r => r.job + '@' + at(r.slot)));
		slots = f.jobs.flatMap(j => j.paused ? [] : j.slots.map(s => ({job: j.id, name: j.name, t: s * 1000})).filter(s => !planned.has(s.job + '@' + s.t)));
		for (const s of slots) {
			const c = counts[Math.floor((s.t - start) / width)];
			if (c)
				c.next++;
		}
		counted = {start, width, counts};
		cut = (whole ? '' : 'All runs are counted; the lanes show ' + count(runs.length) + ' of them. ') + (f.complete ? '' : 'Only the first ' + count(slots.length) + ' future slots are shown. ');
		draw();
		words();
	}

	const begin = r => at(r.first_start || r.started_at || r.slot);
	const end = (r, now) => r.ended_at ? Math.max(at(r.ended_at), begin(r)) : r.started_at ? now : begin(r);

	// A canvas needs the colour that applies now.
	const colors = {};
	function color(name) {
		if (!colors[name]) {
			box.style.color = 'var(--' + name + ')';
			colors[name] = getComputedStyle(box).color;
			box.style.color = '';
		}
		return colors[name];
	}

	function draw() {
		const width = canvas.parentNode.clientWidth - 24, ratio = devicePixelRatio || 1, now = Date.now();
		const left = width < 600 ? 90 : LEFT, x = t => left + (t - from()) / span * (width - left);
		const jobs = new Map();
		for (const e of [...runs, ...slots]) {
			const lane = jobs.get(e.job) || {id: e.job, name: e.job_name || e.name || '#' + e.job, n: 0};
			lane.n++;
			jobs.set(e.job, lane);
		}
		lanes = [...jobs.values()].sort((a, b) => b.n - a.n).slice(0, LANES).sort((a, b) => a.name.localeCompare(b.name));
		const height = TOP + lanes.length * LANE + 24, row = new Map(lanes.map((l, i) => [l.id, TOP + i * LANE]));
		canvas.width = width * ratio;
		canvas.height = height * ratio;
		canvas.style.width = width + 'px';
		canvas.style.height = height + 'px';
		const c = canvas.getContext('2d');
		c.scale(ratio, ratio);
		c.clearRect(0, 0, width, height);
		c.font = '11px system-ui, sans-serif';
		c.textBaseline = 'middle';
		spots = [];
		grid(c, x, width, height, left, color);
		const states = {succeeded: 'good', failed: 'bad', timed_out: 'bad', lost: 'bad', expired: 'warn', skipped: 'faint', cancelled: 'faint', running: 'accent', claimed: 'accent', queued: 'warn'};
		histogram(c, x, width, left, color, now);
		lanes.forEach((l, i) => {
			c.fillStyle = i % 2 ? color('line') : 'transparent';
			c.globalAlpha = 0.25;
			c.fillRect(0, TOP + i * LANE, width, LANE);
			c.globalAlpha = 1;
			c.fillStyle = color('text');
			let name = l.name;
			while (name.length > 3 && c.measureText(name).width > left - 10)
				name = name.slice(0, -2);
			c.fillText(name === l.name ? name : name + '…', 4, TOP + i * LANE + LANE / 2);
		});
		for (const r of runs) {
			const y = row.get(r.job), a = x(begin(r)), b = x(end(r, now));
			if (y === undefined || b < left || a > width)
				continue;
			c.fillStyle = color(states[r.state] || 'faint');
			const w = Math.max(2, b - Math.max(a, left));
			c.fillRect(Math.max(a, left), y + 4, w, LANE - 8);
			spots.push({x: Math.max(a, left), w: Math.max(5, w), y, run: r});
		}
		c.strokeStyle = color('accent');
		for (const s of slots) {
			const y = row.get(s.job), a = x(s.t);
			if (y === undefined || a < left || a > width)
				continue;
			c.strokeRect(a + 0.5, y + 5.5, 3, LANE - 11);
			spots.push({x: a - 2, w: 7, y, slot: s});
		}
		if (x(now) >= left && x(now) <= width) {
			c.strokeStyle = color('bad');
			c.beginPath();
			c.moveTo(x(now), 0);
			c.lineTo(x(now), height - 18);
			c.stroke();
		}
		canvas.setAttribute('aria-label', count(total) + ' runs and ' + count(slots.length) + ' future slots from ' + when(from()) + ' to ' + when(to()) +
			'. Arrow keys move, plus and minus zoom. The peaks are in the table below.');
	}

	function grid(c, x, width, height, left, color) {
		const step = STEPS.find(s => s / span * (width - left) > 70) || 7 * DAY;
		const shift = zoneShift(middle);
		c.fillStyle = color('dim');
		c.strokeStyle = color('line');
		for (let t = Math.ceil((from() + shift) / step) * step - shift; t < to(); t += step) {
			c.beginPath();
			c.moveTo(Math.round(x(t)) + 0.5, 0);
			c.lineTo(Math.round(x(t)) + 0.5, height - 18);
			c.stroke();
			c.fillText(step >= DAY ? when(t, 'day').slice(5) : step < MINUTE ? when(t, 'time') : when(t, 'minute'), x(t) + 2, height - 9);
		}
		c.fillText(when(middle, 'day'), 4, height - 9);
	}

	// The counts are exact. The line is the number of active runs, if all runs were read.
	function histogram(c, x, width, left, color, now) {
		if (!counted)
			return;
		const {start, width: part, counts} = counted, w = part / span * (width - left), going = new Array(counts.length).fill(0);
		for (const r of whole ? runs : [])
			if (r.started_at)
				for (let i = Math.max(0, Math.floor((begin(r) - start) / part)); i <= Math.min(going.length - 1, Math.floor((end(r, now) - start) / part)); i++)
					going[i]++;
		const top = counts.reduce((most, q, i) => Math.max(most, q.runs, q.next, going[i]), 1), y = v => v / top * (TOP - 26);
		c.fillStyle = color('dim');
		c.fillText(whole ? 'runs, at once' : 'runs', 4, 12);
		c.fillText('up to ' + count(top), 4, 28);
		c.save();
		c.beginPath();
		c.rect(left, 0, width - left, TOP);
		c.clip();
		counts.forEach((q, i) => {
			const a = x(start + i * part), bar = Math.max(1, w - 1);
			c.fillStyle = color('good');
			c.fillRect(a, TOP - 8 - y(q.runs), bar, y(q.runs));
			c.fillStyle = color('bad');
			const bad = q.failed ? Math.max(3, y(q.failed)) : 0;
			c.fillRect(a, TOP - 8 - bad, bar, bad);
			c.strokeStyle = color('accent');
			if (q.next)
				c.strokeRect(a + 0.5, TOP - 8 - y(q.next), Math.max(1, w - 2), y(q.next));
		});
		c.strokeStyle = color('text');
		c.beginPath();
		if (whole)
			going.forEach((v, i) => c.lineTo(x(start + (i + 0.5) * part), TOP - 8 - y(v)));
		c.stroke();
		c.restore();
	}

	// The busiest intervals, for readers of the text.
	function words() {
		const {start, width, counts} = counted, k = counts.length / PEAKS, list = [];
		for (let i = 0; i < PEAKS; i++) {
			const a = start + width * k * i, b = a + width * k, x = {a, b, n: 0, next: 0, bad: 0, over: '–'};
			for (const c of counts.slice(i * k, (i + 1) * k)) {
				x.n += c.runs + c.next;
				x.next += c.next;
				x.bad += c.failed;
			}
			if (whole)
				x.over = runs.filter(r => r.started_at && begin(r) < b && end(r, Date.now()) >= a).length;
			list.push(x);
		}
		fill(info, cut + count(total) + ' runs, ' + count(slots.length) + ' future slots, ' + count(lanes.length) + ' jobs shown; ' + duration(span / 1000) + ' in ' + zone() + '.');
		fill(peaks, section('Peaks', table('Busiest intervals', [
			['From', x => time(x.a)], ['To', x => when(x.b, span > DAY ? 'full' : 'time').slice(span > DAY ? 5 : 0, 16), {class: 'p2'}], ['Runs', x => count(x.n), {class: 'right'}], ['Future', x => count(x.next), {class: 'right'}],
			['Failed', x => count(x.bad), {class: 'right'}], ['Active runs', x => x.over, {class: 'right'}]], list.filter(x => x.n).sort((p, q) => q.n - p.n).slice(0, 5)),
		h('p', lanes.slice(0, 12).map(l => [jobLink(l.id, l.name), ' ']))));
	}

	const hit = e => {
		const r = canvas.getBoundingClientRect(), px = e.clientX - r.left, py = e.clientY - r.top;
		return spots.findLast(s => px >= s.x - 1 && px <= s.x + s.w && py >= s.y && py < s.y + LANE);
	};
	let drag = null;
	canvas.addEventListener('pointerdown', e => {
		drag = {x: e.clientX, middle, moved: false};
		canvas.setPointerCapture(e.pointerId);
	});
	canvas.addEventListener('pointermove', e => {
		if (drag) {
			const by = -(e.clientX - drag.x) / (canvas.clientWidth - LEFT) * span;
			drag.moved ||= Math.abs(e.clientX - drag.x) > 4;
			if (drag.moved)
				move({by: drag.middle + by - middle});
			return;
		}
		const s = hit(e);
		canvas.style.cursor = s ? 'pointer' : 'grab';
		canvas.title = !s ? '' : s.run ? (s.run.job_name || '#' + s.run.job) + ', run ' + s.run.id + ': ' + s.run.state + ', ' + when(begin(s.run)) : (s.slot.name || '#' + s.slot.job) + ', ' + when(s.slot.t);
	});
	canvas.addEventListener('pointerup', e => {
		const s = !drag?.moved && hit(e);
		drag = null;
		if (s)
			go(s.run ? 'runs/' + s.run.id : 'jobs/' + s.slot.job);
	});
	canvas.addEventListener('wheel', e => {
		if (!e.ctrlKey && !e.shiftKey)
			return;
		e.preventDefault();
		move(e.ctrlKey ? {span: span * (e.deltaY > 0 ? 1.25 : 0.8)} : {by: span * Math.sign(e.deltaY || e.deltaX) / 10});
	}, {passive: false});
	canvas.addEventListener('keydown', e => {
		const f = {ArrowLeft: {by: -span / 6}, ArrowRight: {by: span / 6}, '+': {span: span / 2}, '-': {span: span * 2}, Home: {now: true}}[e.key];
		if (f) {
			e.preventDefault();
			move(f);
		}
	});
	const resize = () => draw();
	const repaint = context.repaint = () => {
		for (const name in colors)
			delete colors[name];
		draw();
	};
	const dark = matchMedia('(prefers-color-scheme: dark)');
	window.addEventListener('resize', resize);
	dark.addEventListener('change', repaint);
	context.onEnd(() => {
		window.removeEventListener('resize', resize);
		dark.removeEventListener('change', repaint);
	});
	context.update = next => {
		span = Number(next.span) || span;
		if (next.at)
			middle = Number(next.at);
		load().catch(e => e.name === 'AbortError' || fill(info, e.message));
	};
	await refresh(context, load, e => (e.what || '').startsWith('run') && moving);
}

// How far the wall clock of the zone is ahead of UTC.
function zoneShift(t) {
	const text = when(t, 'full');
	const m = /(\d+)-(\d+)-(\d+) (\d+):(\d+):(\d+)/.exec(text);
	return m ? Date.UTC(m[1], m[2] - 1, m[3], m[4], m[5], m[6]) - Math.floor(t / 1000) * 1000 : 0;
}
