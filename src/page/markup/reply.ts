/** Replies of servers, the code and the text first. Host and command follow in small print when the reply is opened. */
import { html, type Html, type Part } from '../../presentation/html.ts'
import { hintPart } from './marks.ts'

export interface ShownReply {
  /** `421 4.7.28`; empty without a reply code. */
  readonly codes: string
  readonly text: string
  /** Text before and after the reply, such as the host and the command; null for nothing. */
  readonly about: string | null
}

/**
 * Host, reply and command in a reason of delivery (classify.ts): `host mx[ip] said: 421 4.7.28 text (in reply to RCPT TO command)`,
 * `host mx[ip] refused to talk to me: 421 4.3.2 text`.
 */
const SAID = /^(.*?)(?:host|server) (\S+) (?:said|(refused to talk to me|refused to start TLS)): (.*?)(?: \((in reply to [^()]*)\))?$/s
/** `connect to mx[ip]:25: Connection refused`. */
const CONNECT = /^(.*?)(connect to \S+): (.+)$/s
const CODES = /^(\d{3}(?:[ -][245]\.\d{1,3}\.\d{1,3})?)(?:[ -]|$)/

const joinedTexts = (texts: readonly (string | undefined)[]): string | null =>
  texts
    .map((text) => text?.replace(/(?:[:;]|, but) $/, ''))
    .filter((text) => text !== undefined && text !== '')
    .join(', ') || null

/** Splits a reply, or a reason of delivery that contains one. */
export function shownReply(whole: string): ShownReply {
  const said = SAID.exec(whole)
  const connect = said === null ? CONNECT.exec(whole) : null
  const reply = said?.[4] ?? connect?.[3] ?? whole
  const codes = CODES.exec(reply)
  const about = said === null ? joinedTexts([connect?.[2], connect?.[1]]) : joinedTexts([said[2], said[3], said[5], said[1]])
  return { codes: codes?.[1] ?? '', text: reply.slice(codes?.[0].length ?? 0), about }
}

/** Length in characters from which a reply may be cut where it is shown. */
const LONG = 48

/** A sentence that may be cut, because it contains a reply; opening it shows the whole. */
export const longText = (text: string): Html =>
  text.length <= LONG
    ? html`<span class="reply">${text}</span>`
    : html`<details class="reply">
        <summary><span class="said">${text}</span></summary>
      </details>`

/** A reply that may be cut; opening it shows the whole. `about` is what stands in small print beside the host, such as the stage. */
export function replyPart(
  whole: string | null | undefined,
  { hint = null, about = null }: { readonly hint?: string | null; readonly about?: Part } = {},
): Part {
  if (whole === null || whole === undefined || whole === '') return null
  const { codes, text, about: host } = shownReply(whole)
  const said: Html = html`${codes === '' ? null : html`<strong>${codes}</strong> `}${text}`
  const small = html`${host}${host !== null && about !== null ? ' · ' : null}${about}`
  const isPlain = host === null && about === null && codes.length + text.length <= LONG
  const shown: Html = isPlain
    ? html`<span class="reply">${said}</span>`
    : html`<details class="reply">
        <summary><span class="said">${said}</span></summary>
        ${host === null && about === null ? null : html`<p class="faint">${small}</p>`}
      </details>`
  return html`${shown}${hintPart(hint)}`
}
