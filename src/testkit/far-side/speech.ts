/** From what the far side says and how, to what happens on the connection, step by step: pure. */
import type { Duration } from '../../mail/clock.ts'
import type { Drop, Manner } from './rule.ts'

export type Step =
  | { readonly do: 'wait'; readonly for: Duration }
  | { readonly do: 'send'; readonly bytes: Buffer }
  | { readonly do: 'close'; readonly how: Drop }
  /** Never says anything again, but stays. */
  | { readonly do: 'hush' }

/** How the far side speaks when it has no reason to do otherwise. */
export const PLAINLY: Manner = { say: { kind: 'usual' }, delay: 0, repeat: 1, ending: 'go-on' }

/** The bytes of a reply, lines joined as RFC 5321 §4.2.1 has it: `250-first`, `250 last`. */
export function replyBytes(lines: readonly string[]): string {
  const last = lines.length - 1
  return lines.map((line, index) => `${line.slice(0, 3)}${index < last ? '-' : ' '}${line.slice(4)}\r\n`).join('')
}

function words({ say }: Manner, usual: readonly string[]): string {
  switch (say.kind) {
    case 'usual':
      return replyBytes(usual)
    case 'reply':
      return replyBytes(say.lines)
    case 'raw':
      return say.bytes
    case 'nothing':
      return ''
  }
}

/** What the client can take the reply for: its code, or undefined when it gets none or only a part. */
export function codeSaid(manner: Manner, usual: readonly string[]): number | undefined {
  if (manner.cut !== undefined) return undefined
  const code = /^(\d{3})/.exec(words(manner, usual))?.[1]
  return code === undefined ? undefined : Number(code)
}

function pieces({ drip, split }: Manner, bytes: Buffer): { readonly parts: readonly Buffer[]; readonly gap: Duration } {
  if (drip !== undefined) return { parts: Array.from(bytes, (byte) => Buffer.of(byte)), gap: drip }
  if (split === undefined || split.at >= bytes.length) return { parts: [bytes], gap: 0 }
  return { parts: [bytes.subarray(0, split.at), bytes.subarray(split.at)], gap: split.gap }
}

/** Everything that is done at a stage, in order. */
export function* speak(manner: Manner, usual: readonly string[]): Generator<Step> {
  if (manner.delay > 0) yield { do: 'wait', for: manner.delay }
  const text = Buffer.from(words(manner, usual).repeat(manner.repeat), manner.say.kind === 'raw' ? 'latin1' : 'utf8')
  const { parts, gap } = pieces(manner, text.subarray(0, manner.cut))
  for (const [index, bytes] of parts.entries()) {
    if (index > 0 && gap > 0) yield { do: 'wait', for: gap }
    if (bytes.length > 0) yield { do: 'send', bytes }
  }
  if (manner.ending === 'hush') yield { do: 'hush' }
  else if (manner.ending !== 'go-on') yield { do: 'close', how: manner.ending }
}
