/**
 * Finds out whether content can be passed on as it is: its lines end in CR LF, and it has no bare CR, no bare LF, and no dot at the start of a
 * line. Nearly all content is of this kind. Four octets are compared at once, because a message of some megabytes costs the thread of the
 * sockets more time here than in any other function.
 */

const LF = 0x0a
const CR = 0x0d
const DOT = 0x2e

/** A limit that no line reaches. */
export const NO_LIMIT = 0x3fffffff

/** State before the first octet. */
export interface LineState {
  /** The octet before; LF at the beginning of a content. */
  readonly last: number
  /** Number of octets of the current line before; 0 after a line end. */
  readonly column: number
}

export interface LineRules {
  /** Maximum number of octets of a line without its line end. */
  readonly limit: number
  /** True when a dot at the start of a line is passed on like any other octet. */
  readonly dots: boolean
}

interface PlainLines {
  /** True when all octets follow the rules. */
  readonly isPlain: boolean
  /** Start of the line that breaks a rule, otherwise of the last line; negative when that line began before the first octet. */
  readonly lineStart: number
}

/** Reads octets from a position on. A CR at the very end may be the first half of a line end, and breaks no rule. */
export function plainLines(bytes: Uint8Array, from: number, { last, column }: LineState, { limit, dots }: LineRules): PlainLines {
  const length = bytes.length
  const view = new DataView(bytes.buffer, bytes.byteOffset, length)
  let lineStart = from - column
  let at = from
  if (at < length && last === CR) {
    if (bytes[at] !== LF) return { isPlain: false, lineStart }
    lineStart = ++at
  }
  if (!dots && at === lineStart && bytes[at] === DOT) return { isPlain: false, lineStart }
  for (at = nextControl(view, at, length); at < length; at = nextControl(view, at, length)) {
    const byte = bytes[at]
    if (byte === LF || (byte === CR && at + 1 < length && bytes[at + 1] !== LF)) return { isPlain: false, lineStart }
    at++
    if (byte !== CR || at === length) continue
    if (at - 1 - lineStart > limit) return { isPlain: false, lineStart }
    lineStart = ++at
    if (!dots && bytes[at] === DOT) return { isPlain: false, lineStart }
  }
  return { isPlain: length - lineStart <= limit, lineStart }
}

/** Position of the next octet below 14, such as CR and LF, from a position on; `length` when there is none. */
function nextControl(view: DataView, from: number, length: number): number {
  let at = from
  for (; at + 4 <= length; at += 4) {
    const word = view.getInt32(at, true)
    // The lowest bit that is set is the highest one of the first octet below 14.
    const below = (word - 0x0e0e0e0e) & ~word & 0x80808080
    if (below !== 0) return at + ((31 - Math.clz32(below & -below)) >> 3)
  }
  while (at < length && view.getUint8(at) >= 14) at++
  return at
}
