// SPDX-License-Identifier: Apache-2.0
// Shows the output of an attempt. Only a window of it is in memory: pieces are fetched by byte range and dropped again.
import {get, raw, search} from './api.js';
import {bytes, button, count, fill, h, say, shown} from './dom.js';

const PIECE = 64 * 1024, KEEP = 6; // bytes per request; pieces in the window
const LINE_MAX = 4000;             // characters of a line in one node

export function logViewer(run, attempt, running) {
	const text = h('div.logtext', {tabindex: 0, role: 'log', 'aria-label': 'output', 'aria-live': 'off'});
	const position = h('input', {type: 'range', min: 0, max: 1000, value: 1000, 'aria-label': 'position in the output'});
	const info = h('span.dim.num'), follow = h('input', {type: 'checkbox', checked: running});
	const find = h('input', {type: 'search', placeholder: 'find in the output', 'aria-label': 'find in the output', spellcheck: 'false'});
	const hits = h('span.dim', {role: 'status'});
	const wrap = h('input', {type: 'checkbox', checked: true, onchange: () => text.classList.toggle('nowrap', !wrap.checked)});
	const path = 'runs/' + run + '/output';
	let total = 0, dropped = 0, gap = 0, pieces = [], busy = false, closed = false, stream, matches = [], match = -1, note = '';

	async function fetchPiece(query, signal) {
		const answer = await raw('/v1/' + path + search({attempt, ...query}), {signal});
		total = Number(answer.headers.get('X-Jobsched-Output-Bytes'));
		dropped = Number(answer.headers.get('X-Jobsched-Output-Dropped'));
		gap = dropped ? Number(answer.headers.get('X-Jobsched-Output-Gap')) : Infinity;
		note = answer.headers.get('X-Jobsched-Output-Note') || '';
		return new Uint8Array(await answer.arrayBuffer());
	}

	// The offset at which the daemon begins when asked for 'from'.
	const kept = from => from >= gap && from < gap + dropped ? gap + dropped : from;
	const end = () => pieces.length ? pieces.at(-1).to : 0;

	// The first bytes may be the rest of a character or escape sequence of which the beginning is not known.
	function makePiece(from, data, style = {}) {
		const {node, style: after} = render(data, style);
		return {from, to: from + data.length, data, node, style, after};
	}
	const partial = (from, data) => {
		const n = from ? data.subarray(0, 3).findIndex(c => (c & 0xc0) !== 0x80) : 0;
		return makePiece(from + Math.max(0, n), data.subarray(Math.max(0, n)));
	};
	// Without the bytes of an unfinished character or sequence at the end, unless they are the end of the output.
	const finished = (from, data) => from + data.length >= total && !running ? data : data.subarray(0, data.length - unfinished(data));

	function describe() {
		const first = pieces[0]?.from ?? 0;
		fill(info, bytes(total) + (dropped ? ', ' + bytes(dropped) + ' dropped' : '') + (total > PIECE ? ', from ' + count(first) : '') + (note ? ' – ' + note : ''));
		position.hidden = total <= PIECE * KEEP;
		position.value = total ? Math.round((first + (end() - first) * (text.scrollTop / Math.max(1, text.scrollHeight))) / total * 1000) : 0;
	}

	function place() {
		// Colours continue in the next piece.
		for (let i = 1; i < pieces.length; i++)
			if (pieces[i - 1].to === pieces[i].from && key(pieces[i - 1].after) !== key(pieces[i].style))
				pieces[i] = makePiece(pieces[i].from, pieces[i].data, pieces[i - 1].after);
		fill(text, pieces.map((p, i) => i && pieces[i - 1].to !== p.from ? [h('div.gap', bytes(p.from - pieces[i - 1].to) + ' are not kept'), p.node] : p.node));
		if (!pieces.length)
			fill(text, h('span.dim', running ? 'No output yet.' : 'No output.'));
		describe();
	}

	async function show(from, bottom) {
		if (busy)
			return;
		busy = true;
		try {
			let data;
			if (from === undefined) {
				data = await fetchPiece({tail: PIECE});
				from = total - data.length;
			} else {
				data = await fetchPiece({from, length: PIECE});
				from = kept(from);
			}
			pieces = data.length ? [partial(from, finished(from, data))] : [];
			place();
			text.scrollTop = bottom ? text.scrollHeight : 0;
		} catch (e) {
			fill(text, h('p.note.bad', e.message));
		}
		busy = false;
	}

	async function older() {
		const first = pieces[0];
		if (busy || !first || first.from === 0)
			return;
		busy = true;
		try {
			let to = first.from;
			if (dropped && to === gap + dropped)
				to = gap;
			const from = Math.max(to > gap + dropped ? gap + dropped : 0, to - PIECE);
			const data = await fetchPiece({from, length: to - from});
			if (data.length) {
				const top = p => p.node.getBoundingClientRect().top, before = top(first);
				pieces = [partial(from, data), ...pieces].slice(0, KEEP);
				place();
				text.scrollTop += top(pieces[1]) - before; // the text stays where it was
			}
		} catch (e) {
			say(e.message, true);
		}
		busy = false;
	}

	async function newer() {
		if (busy || closed || !pieces.length || (end() >= total && !running))
			return;
		busy = true;
		try {
			const from = kept(end());
			const data = await fetchPiece({from, length: PIECE});
			if (data.length)
				append(makePiece(kept(from), finished(kept(from), data)));
		} catch (e) {
			if (e.name !== 'AbortError')
				say(e.message, true);
		}
		busy = false;
	}

	function append(piece) {
		const height = text.scrollHeight, stick = text.scrollHeight - text.scrollTop - text.clientHeight < 30;
		// Small pieces are joined, so that a followed output has few nodes.
		const last = pieces.at(-1);
		if (last && last.to === piece.from && last.data.length + piece.data.length <= PIECE) {
			const data = join(last.data, piece.data);
			pieces[pieces.length - 1] = makePiece(last.from, data, last.style);
			last.node.replaceWith(pieces.at(-1).node);
			if (pieces.length === 1 && text.firstChild !== pieces[0].node)
				place();
		} else {
			const top = text.scrollTop;
			pieces.push(piece);
			if (pieces.length > KEEP) {
				const gone = pieces.shift().node.offsetHeight;
				place();
				text.scrollTop = top - gone;
			} else
				place();
		}
		if (follow.checked && stick || height === 0)
			text.scrollTop = text.scrollHeight;
		describe();
	}

	// Follows by one request that the daemon keeps open.
	async function followOn() {
		stream?.abort();
		if (!follow.checked || !running || closed)
			return;
		await show(undefined, true);
		stream = new AbortController();
		try {
			const from = end();
			const answer = await raw('/v1/' + path + search({attempt, from, follow: 'true'}), {signal: stream.signal});
			const reader = answer.body.getReader();
			for (let offset = from, rest = new Uint8Array(0); ;) {
				const {done, value = new Uint8Array(0)} = await reader.read();
				const data = join(rest, value), n = done ? 0 : unfinished(data);
				total = Math.max(total, offset + data.length);
				rest = data.slice(data.length - n);
				if (data.length > n)
					append(makePiece(offset, data.subarray(0, data.length - n)));
				offset += data.length - n;
				if (done)
					break;
			}
		} catch (e) {
			if (e.name !== 'AbortError' && !closed)
				say(e.message, true);
		}
	}

	async function search_() {
		const wanted = find.value;
		matches = [];
		match = -1;
		if (!wanted)
			return fill(hits);
		let from = 0, steps = 0;
		try {
			do {
				const r = await get(path + '/search', {text: wanted, attempt, from, limit: 1000});
				if (closed || find.value !== wanted)
					return;
				matches.push(...r.matches);
				from = r.next_from;
				fill(hits, count(matches.length) + (from ? ' found in ' + bytes(from) + '…' : ' found'));
				if (match < 0 && matches.length)
					await jump(0);
			} while (from && ++steps < 2000 && matches.length < 5000);
			fill(hits, matches.length ? (match + 1) + ' of ' + count(matches.length) + (from ? '+' : '') : 'not found');
		} catch (e) {
			fill(hits, e.message);
		}
	}

	async function jump(step) {
		if (!matches.length)
			return;
		match = step === 0 ? 0 : (match + step + matches.length) % matches.length;
		follow.checked = false;
		stream?.abort();
		const offset = Number(matches[match]);
		fill(hits, (match + 1) + ' of ' + count(matches.length));
		if (!pieces.some(p => p.from <= offset && offset + 300 < p.to)) {
			busy = false;
			await show(Math.max(kept(offset) === offset && offset >= gap + dropped ? gap + dropped || 0 : 0, offset - PIECE / 2));
		}
		for (const m of text.querySelectorAll('mark'))
			m.replaceWith(...m.childNodes);
		const piece = pieces.find(p => p.from <= offset && offset < p.to);
		if (piece)
			highlight(piece, offset - piece.from, new TextEncoder().encode(find.value).length);
	}

	// Marks bytes of a piece: counts the bytes of its text nodes.
	function highlight(piece, at, length) {
		const decoder = new TextDecoder();
		const before = decoder.decode(piece.data.subarray(0, at)).replace(ANSI, '').length;
		const size = decoder.decode(piece.data.subarray(at, at + length)).length;
		const walker = document.createTreeWalker(piece.node, NodeFilter.SHOW_TEXT);
		let n = 0;
		for (let node = walker.nextNode(); node; node = walker.nextNode()) {
			if (n + node.length > before) {
				const range = document.createRange(), start = before - n;
				range.setStart(node, start);
				range.setEnd(node, Math.min(node.length, start + size));
				const mark = h('mark');
				range.surroundContents(mark);
				mark.scrollIntoView({block: 'center'});
				return;
			}
			n += node.length;
		}
	}

	text.addEventListener('scroll', () => {
		if (text.scrollTop < 200)
			older();
		else if (text.scrollHeight - text.scrollTop - text.clientHeight < 200 && end() < total)
			newer();
		describe();
	});
	position.addEventListener('change', () => {
		follow.checked = false;
		stream?.abort();
		show(Math.floor(position.value / 1000 * Math.max(0, total - PIECE)));
	});
	follow.addEventListener('change', followOn);
	let timer;
	find.addEventListener('input', () => {
		clearTimeout(timer);
		timer = setTimeout(search_, 400);
	});
	find.addEventListener('keydown', e => e.key === 'Enter' && (e.preventDefault(), matches.length ? jump(e.shiftKey ? -1 : 1) : search_()));
	if (running)
		followOn();
	else
		show(undefined, true);

	return {
		element: h('div.log', h('div.logbar', info, find, button('↑', () => jump(-1), {'aria-label': 'previous match'}), button('↓', () => jump(1), {'aria-label': 'next match'}), hits,
			button('Start', () => { follow.checked = false; stream?.abort(); busy = false; show(0); }), button('End', () => show(undefined, true)),
			running ? h('label', follow, ' follow') : null, h('label', wrap, ' wrap')), position, text),
		ended() { running = false; follow.parentNode?.remove(); },
		close() { closed = true; stream?.abort(); },
	};
}

// ---- text with colours ----

const ANSI = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]|\r(?=\n)/g;

const key = style => Object.values(style).join();

function join(a, b) {
	const data = new Uint8Array(a.length + b.length);
	data.set(a);
	data.set(b, a.length);
	return data;
}

// The number of bytes of a character or escape sequence that the end of the data cuts.
export function unfinished(data) {
	for (let i = 1; i <= Math.min(3, data.length); i++) {
		const c = data[data.length - i];
		if ((c & 0xc0) !== 0x80) {
			if (c >= 0xc0 && i < (c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4))
				return i;
			break;
		}
	}
	const tail = data.subarray(-32), n = tail.lastIndexOf(27);
	return n >= 0 && /^\x1b(\[[0-?]*[ -/]*)?$/.test(String.fromCharCode(...tail.subarray(n))) ? tail.length - n : 0;
}

// Everything from the job becomes a text node; colours are classes of a fixed set. Returns the style after the data, too.
export function render(data, style = {}) {
	const text = new TextDecoder().decode(data), box = h('div.piece');
	let last = 0;
	const put = part => {
		for (let i = 0; i < part.length; i += LINE_MAX) {
			const node = document.createTextNode(shown(part.slice(i, i + LINE_MAX)));
			const classes = Object.values(style).filter(Boolean);
			if (classes.length) {
				const span = h('span');
				span.className = classes.join(' ');
				span.append(node);
				box.append(span);
			} else
				box.append(node);
		}
	};
	for (const m of text.matchAll(ANSI)) {
		put(text.slice(last, m.index));
		last = m.index + m[0].length;
		if (m[0].endsWith('m') && m[0][1] === '[')
			style = sgr(style, m[0].slice(2, -1));
	}
	put(text.slice(last));
	return {node: box, style};
}

function sgr(style, codes) {
	const s = {...style}, list = codes.split(/[;:]/).map(Number);
	for (let i = 0; i < list.length; i++) {
		const c = list[i];
		if (!c)
			return sgrRest({}, list.slice(i + 1));
		if (c === 1)
			s.bold = 'a-bold';
		else if (c === 2)
			s.dim = 'a-dim';
		else if (c === 3)
			s.italic = 'a-italic';
		else if (c === 4)
			s.under = 'a-under';
		else if (c === 22)
			s.bold = s.dim = '';
		else if (c === 23)
			s.italic = '';
		else if (c === 24)
			s.under = '';
		else if (c >= 30 && c <= 37)
			s.fg = 'a-f' + (c - 30);
		else if (c >= 90 && c <= 97)
			s.fg = 'a-f' + (c - 90);
		else if (c >= 40 && c <= 47)
			s.bg = 'a-b' + (c - 40);
		else if (c >= 100 && c <= 107)
			s.bg = 'a-b' + (c - 100);
		else if (c === 39)
			s.fg = '';
		else if (c === 49)
			s.bg = '';
		else if (c === 38 || c === 48) {
			const near = list[i + 1] === 5 ? nearest256(list[i + 2]) : nearest(list[i + 2], list[i + 3], list[i + 4]);
			s[c === 38 ? 'fg' : 'bg'] = (c === 38 ? 'a-f' : 'a-b') + near;
			i += list[i + 1] === 5 ? 2 : 4;
		}
	}
	return s;
}
const sgrRest = (s, list) => list.length ? sgr(s, list.join(';')) : s;

// The nearest of the eight colours: bit 0 red, 1 green, 2 blue.
const nearest = (r = 0, g = 0, b = 0) => {
	const top = Math.max(r, g, b, 1);
	return top < 60 ? 0 : (r > top * 0.6 ? 1 : 0) + (g > top * 0.6 ? 2 : 0) + (b > top * 0.6 ? 4 : 0);
};
const nearest256 = n => n < 16 ? n % 8 : n > 231 ? (n > 243 ? 7 : 0) : nearest(...[36, 6, 1].map(d => Math.floor((n - 16) / d) % 6 * 51));
