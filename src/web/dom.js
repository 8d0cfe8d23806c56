// SPDX-License-Identifier: Apache-2.0
// Builds elements and formats values. Text from the daemon becomes text nodes only.

// h('a.button', {href: '#/jobs', onclick: f}, 'text', element, [more])
export function h(tag, ...rest) {
	const [name, ...classes] = tag.split('.');
	const e = document.createElement(name || 'div');
	if (classes.length)
		e.className = classes.join(' ');
	for (const part of rest) {
		if (part && part.constructor === Object)
			setAll(e, part);
		else
			add(e, part);
	}
	return e;
}

function setAll(e, attributes) {
	for (const [name, value] of Object.entries(attributes)) {
		if (value === null || value === undefined || value === false)
			continue;
		if (name.startsWith('on'))
			e.addEventListener(name.slice(2), value);
		else if (name === 'value' || name === 'checked' || name === 'disabled' || name === 'selected')
			e[name] = value;
		else if (name === 'href')
			e.setAttribute('href', safeLink(value));
		else
			e.setAttribute(name, value === true ? '' : String(value));
	}
}

// Links lead to views of this page only.
function safeLink(value) {
	return String(value).startsWith('#') ? value : '#/';
}

export function add(e, part) {
	if (part === null || part === undefined || part === false)
		return e;
	if (Array.isArray(part))
		part.forEach(p => add(e, p));
	else
		e.append(part instanceof Node ? part : document.createTextNode(shown(part)));
	return e;
}

// Control and direction characters are shown as symbols, so that a name cannot change the text around it.
export function shown(text) {
	return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g,
		c => c.charCodeAt(0) < 32 ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : '\u2423');
}

// Replaces the content. The focus stays on the control of the same name, and tables keep their scroll position.
export function fill(e, ...parts) {
	const active = e.contains(document.activeElement) && e !== document.activeElement ? document.activeElement : null;
	const left = [...e.querySelectorAll('.scroll')].map(s => s.scrollLeft);
	e.replaceChildren();
	add(e, parts);
	e.querySelectorAll('.scroll').forEach((s, i) => { s.scrollLeft = left[i] || 0; });
	if (active)
		[...e.querySelectorAll(active.tagName)].find(x => nameOf(x) === nameOf(active))?.focus({preventScroll: true});
	return e;
}
const nameOf = e => e.getAttribute('aria-label') || e.getAttribute('href') || e.textContent;

const NS = 'http://www.w3.org/2000/svg';
export function svg(name, attributes, ...children) {
	const e = document.createElementNS(NS, name);
	for (const [k, v] of Object.entries(attributes || {}))
		e.setAttribute(k, v);
	for (const c of children)
		e.append(c);
	return e;
}

// ---- settings ----

const memory = {};
export const settings = {
	get(key, preset) {
		try { return localStorage.getItem('jobsched.' + key) ?? preset; } catch { return memory[key] ?? preset; }
	},
	set(key, value) {
		memory[key] = value;
		try { localStorage.setItem('jobsched.' + key, value); } catch { /* private window */ }
	},
};

export const localZone = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';
export const zone = () => settings.get('zone', localZone);

// ---- formats ----

const formats = {};
function format(tz, kind) {
	const key = tz + kind;
	const day = {year: 'numeric', month: '2-digit', day: '2-digit'};
	const time = {hour: '2-digit', minute: '2-digit', second: '2-digit'};
	const options = {full: {...day, ...time}, day, time, minute: {hour: '2-digit', minute: '2-digit'}}[kind];
	try {
		return formats[key] ??= new Intl.DateTimeFormat('sv-SE', {...options, timeZone: tz, hourCycle: 'h23'});
	} catch {
		return formats[key] = format('UTC', kind);
	}
}

export const at = t => t === null || t === undefined ? NaN : typeof t === 'number' ? t : Date.parse(t);
export const when = (t, kind = 'full', tz = zone()) => isNaN(at(t)) ? '' : format(tz, kind).format(at(t));
// Times in a sentence of the daemon, in the chosen zone.
export const zoned = text => String(text).replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, t => when(t));
export const weekday = (t, tz = zone()) => new Intl.DateTimeFormat('en', {weekday: 'short', timeZone: tz}).format(at(t));
// The difference to UTC at a time, as '+02:00'.
export function offset(t, tz = zone()) {
	try {
		const part = new Intl.DateTimeFormat('en', {timeZone: tz, timeZoneName: 'longOffset'}).formatToParts(at(t))
			.find(p => p.type === 'timeZoneName');
		return part.value.replace('GMT', '') || '+00:00';
	} catch {
		return '+00:00';
	}
}

export function duration(s) {
	if (s === null || s === undefined || isNaN(s))
		return '';
	const sign = s < 0 ? '-' : '';
	s = Math.abs(s);
	if (s < 0.0995)
		return sign + Math.round(s * 1000) + ' ms';
	if (s < 9.95)
		return sign + s.toFixed(1) + ' s';
	if (s < 60)
		return sign + Math.round(s) + ' s';
	const units = [['d', 86400], ['h', 3600], ['m', 60], ['s', 1]];
	const i = units.findIndex(u => s >= u[1]);
	const big = Math.floor(s / units[i][1]);
	const small = units[i + 1] ? Math.floor(s % units[i][1] / units[i + 1][1]) : 0;
	return sign + big + units[i][0] + (small && i < 3 ? ' ' + small + units[i + 1][0] : '');
}

export function ago(t, now = Date.now()) {
	const s = (at(t) - now) / 1000;
	if (isNaN(s))
		return '';
	return Math.abs(s) < 1 ? 'now' : s > 0 ? 'in ' + duration(Math.round(s)) : duration(Math.round(-s)) + ' ago';
}

export function bytes(n) {
	if (n === null || n === undefined)
		return '';
	n = Number(n);
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let i = 0;
	while (n >= 1024 && i < 4) {
		n /= 1024;
		i++;
	}
	return (i && n < 9.95 ? n.toFixed(1) : Math.round(n)) + ' ' + units[i];
}

export const count = n => n === null || n === undefined ? '–' : Number(n).toLocaleString('en').replace(/,/g, '\u202f');

// A time with its age; the title has the zone.
export function time(t, kind) {
	if (isNaN(at(t)))
		return h('span.dim', '–');
	return h('time', {datetime: new Date(at(t)).toISOString(), title: when(t) + ' ' + zone() + ' (' + ago(t) + ')'},
		kind ? when(t, kind) : [h('span.p2', when(t).slice(0, 5)), when(t).slice(5, 16), h('span.p2', when(t).slice(16))]);
}

const marks = {succeeded: '✓', failed: '✕', timed_out: '◔', lost: '?', cancelled: '–', skipped: '»', expired: '◌', running: '▶', claimed: '▷', queued: '…',
	active: '●', paused: '‖', suspended: '!', finished: '■', removed: '×', alive: '●', draining: '◐', silent: '!', stopped: '■'};
export function state(s) {
	return h('span.state.s-' + String(s).replace(/\W/g, ''), h('span', {'aria-hidden': 'true'}, marks[s] || '·'), ' ', String(s).replace('_', ' '));
}

export const took = r => r?.started_at && r.ended_at ? (at(r.ended_at) - at(r.started_at)) / 1000 : NaN;
export const late = r => r.first_start ? Math.max(0, (at(r.first_start) - at(r.slot)) / 1000) : NaN;
// The result of a run or an attempt, and why a run waits.
export const result = r => [state(r.state || r.outcome), r.exit_code ? h('span.dim', ' exit ' + r.exit_code) : null, r.signal ? h('span.dim', ' signal ' + r.signal) : null];
export const because = r => zoned(r.reason || r.waiting_for?.message || r.waiting_for?.code || (typeof r.waiting_for === 'string' ? r.waiting_for : ''));
// What the command of a run reported last.
export const progress = r => r.progress ? h('span.dim', known(r.progress.percent) ? [h('progress', {max: 100, value: r.progress.percent, 'aria-label': 'progress'}), ' ' + r.progress.percent + ' %'] : null,
	r.progress.text ? ' ' + r.progress.text : null) : null;
export const known = x => x !== null && x !== undefined && x === x;
// The values of variables whose names sound like secrets are hidden.
export const masked = (name, value) => /pass|secret|token|key|credential/i.test(name) ? '••••••' : value;
export const jobLink = (id, name) => h('a', {href: '#/jobs/' + id}, name || '#' + id);
export const runLink = id => h('a.num', {href: '#/runs/' + id}, id);

// ---- tables ----

// columns: [title, function of the row, {class, sort}]
export function table(caption, columns, rows, options = {}) {
	const head = columns.map(([title, , o = {}]) => h('th', {scope: 'col', class: o.class, 'aria-sort': o.sorted},
		o.sort ? h('button.sort', {type: 'button', onclick: o.sort}, title, h('span', {'aria-hidden': 'true'},
			o.sorted === 'ascending' ? ' ▲' : o.sorted === 'descending' ? ' ▼' : '')) : title || h('span.hidden', o.label || 'Actions')));
	const body = rows.map(row => h('tr', options.row ? options.row(row) : {}, columns.map(([, cell, o = {}]) => h('td', {class: o.class}, cell(row)))));
	return h('div.scroll', {tabindex: 0, role: 'region', 'aria-label': caption},
		h('table', h('caption.hidden', caption), h('thead', h('tr', head)),
			h('tbody', body.length ? body : h('tr', h('td.empty', {colspan: columns.length}, options.empty || 'Nothing here.')))));
}

export const section = (title, ...parts) => h('section.card', h('h2', title), parts);
export const button = (label, onclick, o = {}) => h('button', {type: 'button', onclick, ...o}, label);
export const field = (label, input) => h('label.field', h('span', label), input);
export const facts = pairs => h('dl.facts', pairs.filter(p => p && p[1] !== null && p[1] !== undefined && p[1] !== '')
	.map(([k, v]) => h('div', h('dt', k), h('dd', v))));

// ---- messages and questions ----

export function say(text, bad) {
	const box = document.getElementById('status');
	const note = h('div.toast' + (bad ? '.bad' : ''), text, button('×', () => note.remove(), {'aria-label': 'close the message'}));
	box.append(note);
	while (box.children.length > 4)
		box.firstChild.remove();
	setTimeout(() => note.remove(), bad ? 15000 : 5000);
}

// Opens a dialog. 'build' gets close(result) and returns the content.
export function dialog(title, build) {
	return new Promise(done => {
		const box = h('dialog', {'aria-label': title});
		let result;
		const close = value => {
			result = value;
			box.close();
		};
		box.append(h('h2', title));
		add(box, build(close));
		box.addEventListener('close', () => {
			box.remove();
			done(result);
		});
		document.body.append(box);
		box.showModal();
	});
}

export function ask(title, text, label, danger) {
	return dialog(title, close => [h('p', text), h('div.actions',
		button('Cancel', () => close(false)), button(label, () => close(true), {class: danger ? 'danger' : 'primary', autofocus: true}))]);
}

// Calls f after calls of the result, at most once per ms().
export function throttle(f, ms) {
	let timer, last = Date.now();
	return () => {
		timer ||= setTimeout(() => {
			timer = 0;
			last = Date.now();
			f();
		}, Math.max(0, last + ms() - Date.now()));
	};
}
