/** Converts the action of a rule and the default reply to steps on the connection. Pure. */
import type { Duration } from '../../system/clock.ts'
import type { Drop, ReplyAction } from './rule.ts'

export type Step =
  | { readonly do: 'wait'; readonly for: Duration }
  | { readonly do: 'send'; readonly bytes: Buffer }
  | { readonly do: 'close'; readonly how: Drop }
  /** Stops sending and leaves the connection open. */
  | { readonly do: 'stall' }

/** Action without a rule: the default reply, sent at once. */
export const DEFAULT_ACTION: ReplyAction = {
  text: { kind: 'usual' },
  delay: 0,
  drip: undefined,
  split: undefined,
  repeat: 1,
  cut: undefined,
  ending: 'continue',
}

/** Text of a multiline reply (RFC 5321 §4.2.1): `250-first`, `250 last`. */
export function replyBytes(lines: readonly string[]): string {
  const last = lines.length - 1
  return lines.map((line, index) => `${line.slice(0, 3)}${index < last ? '-' : ' '}${line.slice(4)}\r\n`).join('')
}

function replyText({ text }: ReplyAction, usual: readonly string[]): string {
  switch (text.kind) {
    case 'usual':
      return replyBytes(usual)
    case 'reply':
      return replyBytes(text.lines)
    case 'raw':
      return text.bytes
    case 'nothing':
      return ''
  }
}

/** Reply code that the client receives; undefined when it receives no reply or only a part. */
export function codeSent(action: ReplyAction, usual: readonly string[]): number | undefined {
  if (action.cut !== undefined) return undefined
  const code = /^(\d{3})/.exec(replyText(action, usual))?.[1]
  return code === undefined ? undefined : Number(code)
}

function pieces({ drip, split }: ReplyAction, bytes: Buffer): { readonly parts: readonly Buffer[]; readonly gap: Duration } {
  if (drip !== undefined) return { parts: Array.from(bytes, (byte) => Buffer.of(byte)), gap: drip }
  if (split === undefined || split.at >= bytes.length) return { parts: [bytes], gap: 0 }
  return { parts: [bytes.subarray(0, split.at), bytes.subarray(split.at)], gap: split.gap }
}

/** Steps of a stage, in order. */
export function* stepsOf(action: ReplyAction, usual: readonly string[]): Generator<Step> {
  if (action.delay > 0) yield { do: 'wait', for: action.delay }
  const text = Buffer.from(replyText(action, usual).repeat(action.repeat), action.text.kind === 'raw' ? 'latin1' : 'utf8')
  const { parts, gap } = pieces(action, text.subarray(0, action.cut))
  for (const [index, bytes] of parts.entries()) {
    if (index > 0 && gap > 0) yield { do: 'wait', for: gap }
    if (bytes.length > 0) yield { do: 'send', bytes }
  }
  if (action.ending === 'stall') yield { do: 'stall' }
  else if (action.ending !== 'continue') yield { do: 'close', how: action.ending }
}
