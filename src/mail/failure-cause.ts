/**
 * Cause of a failure: the text of the reply (of the reason, when no server replied), in which everything that differs from
 * message to message is replaced by a placeholder. Failures with the same cause are counted together.
 */
import type { DeliveryStatus } from './smtp-reply.ts'

/** In characters; a longer cause is cut. */
const CAUSE_LENGTH = 240
/** Characters of the reply that are read. */
const READ_LENGTH = 1_000
/** Minimum length of a word with a digit that is taken for an id. */
const ID_LENGTH = 8

/** Code and enhanced status at the beginning of a reply (RFC 5321 §4.2, RFC 3463), which are part of the cause. */
const CODES = /^\d{3}(?:[ -][245]\.\d{1,3}\.\d{1,3})?(?=\s|-|$)/

const URL_TEXT = String.raw`\bhttps?://[^\s<>()"']+`
const ADDRESS = String.raw`[^\s<>()\[\]"',;:]+@[^\s<>()\[\]"',;:]+`
const IPV4 = String.raw`(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)`
/** An address with `::`, or with at least four colons: a time such as 12:30:05 is none. */
const IPV6 = String.raw`(?<![\w:\]])(?=[0-9a-f]{0,4}(?::[0-9a-f]{1,4}){0,6}(?:::|(?::[0-9a-f]{1,4}){4}))[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:\.\d{1,3}){0,3}(?![\w:])`
const WORD = String.raw`[\p{L}\p{N}_+=/-]+(?:\.[\p{L}\p{N}_+=/-]+)*`
// oxlint-disable-next-line no-restricted-globals -- made of constants, each of which ends at the first character that is not its own
const VARIABLE = new RegExp(`(?<url>${URL_TEXT})|(?<address>${ADDRESS})|(?<ip>${IPV4}|${IPV6})|(?<word>${WORD})`, 'giu')

const HOST = /^[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)*\.\p{L}{2,}$/u
/** A letter between digits, or a digit between letters, as in `98si12`. */
const MIXED = /\d\p{L}+\d|\p{L}\d+\p{L}/u

/** Splits a cause at its placeholders. */
export const PLACEHOLDER = /\{(?:url|address|ip|host|id|n)\}/

/** The begin of a placeholder at the end of a cause that was cut. */
const CUT_PLACEHOLDER = /\{[a-z]*$/

/** A cause for people: `·` stands for each part that differs from message to message. */
export const shownCause = (cause: string): string => cause.split(PLACEHOLDER).join('·')

function placeholderOf(word: string): string {
  if (!/\d/.test(word)) return word
  if (HOST.test(word)) return '{host}'
  return word.length >= ID_LENGTH || MIXED.test(word) ? '{id}' : word.replaceAll(/\d+/g, '{n}')
}

/** Matches a word that may have a variable part: a digit, `@`, `:/` or `::`. The other words, most of a reply, are not searched. */
const MAY_VARY = /\d|@|:[:/]/

function masked(text: string): string {
  if (!MAY_VARY.test(text)) return text
  return text.replaceAll(VARIABLE, (...match) => {
    const { url, address, ip, word } = match.at(-1) as Readonly<Record<string, string | undefined>>
    if (word !== undefined) return placeholderOf(word)
    return url !== undefined ? '{url}' : address !== undefined ? '{address}' : ip === undefined ? '' : '{ip}'
  })
}

/**
 * The codes of a failure, for counts: of the reply, such as `421 4.7.28`, or the enhanced status with the step of the attempt when no server
 * replied: `4.4.1 connect`.
 */
export function causeCode({ reply, status, stage }: Pick<DeliveryStatus, 'reply' | 'status' | 'stage'>): string {
  const codes = reply === undefined ? undefined : CODES.exec(reply.slice(0, READ_LENGTH))?.[0]
  return codes?.replace('-', ' ') ?? `${status} ${stage}`
}

export function causeOf({ reply, reason }: Pick<DeliveryStatus, 'reply' | 'reason'>): string {
  const text = (reply ?? reason).slice(0, READ_LENGTH)
  const codes = reply === undefined ? '' : (CODES.exec(text)?.[0] ?? '')
  const rest = text.slice(codes.length).split(' ').map(masked).join(' ')
  const cause = `${codes}${rest}`.trim()
  return cause.length <= CAUSE_LENGTH
    ? cause
    : `${cause
        .slice(0, CAUSE_LENGTH - 1)
        .replace(CUT_PLACEHOLDER, '')
        .trimEnd()}…`
}
