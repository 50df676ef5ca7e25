/** Events of a sink as lines for a terminal. Only events that a person looks for have a line: faults and received messages. */
import type { MachineClock } from '../../system/clock.ts'
import type { RemoteEvent } from '../../testkit/remote/remote-events.ts'
import { byteSize, localTime, maskControls } from '../../presentation/text.ts'

/** The line of an event; empty for an event without a line. `number` is the number of the message for `deferd sink show`. */
export function sinkLine(event: RemoteEvent, { clock, number }: { readonly clock: MachineClock; readonly number: number | null }): string {
  const text = textOf(event, number)
  return text === null ? '' : `${localTime(clock.now(), clock).slice('2026-01-01 '.length)}  ${maskControls(text)}\n`
}

function textOf(event: RemoteEvent, number: number | null): string | null {
  switch (event.event) {
    case 'refused':
      return `connection refused: ${event.client} (rule ${event.rule})`
    case 'reply': {
      const fails = event.rule !== undefined || /^[45]/.test(event.reply)
      if (!fails) return null
      const rule = event.rule === undefined ? '' : ` (rule ${event.rule})`
      return `${event.command ?? `at ${event.stage}`}: ${event.reply.trimEnd()}${rule}`
    }
    case 'message': {
      const from = event.sender === '' ? '<>' : event.sender
      const label = number === null ? 'message discarded:' : `message ${number}`
      return `${label} from ${from} to ${event.recipients.join(', ')}, ${byteSize(event.size)}, reply ${event.reply_code ?? 'not sent'}`
    }
    case 'authority': {
      const asked = event.grant === '' ? 'device code' : event.grant
      const answer = event.status === null ? 'no answer' : [event.status, event.error ?? ''].join(' ').trimEnd()
      return `token request of ${event.oauth_client || 'no client'} (${asked}): ${answer}${event.rule === undefined ? '' : ` (rule ${event.rule})`}`
    }
    case 'mistyped': {
      const meant = event.meant === null ? '' : ` (did you mean ${event.meant}?)`
      return `not a fault: ${event.word} in ${event.recipient}${meant}`
    }
    case 'lookup':
    case 'connected':
    case 'closed':
      return null
  }
}
