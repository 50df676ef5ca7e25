/** Lines of Postfix's smtpd, pickup and cleanup about messages that arrive. */
import type { ClientName, UpstreamMessage } from '../mail/client-name.ts'
import { queueIdOf, type MessageSummary } from '../mail/message.ts'
import { clientText, type LogLine } from './event-kind.ts'

/** A message that was accepted into the queue. */
export interface Accepted {
  readonly message: MessageSummary
  readonly recipients: readonly string[]
  /** Null for local submissions. */
  readonly client: ClientName | null
  readonly uid?: number | undefined
  readonly originalId?: string | undefined
  readonly saslUsername?: string | undefined
  readonly saslMethod?: string | undefined
  readonly upstream?: UpstreamMessage | undefined
}

/** A message that was accepted and discarded. */
export interface Discarded {
  readonly queueId: string
  readonly sender: string
  readonly messageId: string | undefined
  /** Null for local submissions. */
  readonly client: ClientName | null
  readonly uid?: number | undefined
}

/** `more` ends the line of smtpd or pickup. */
export const arrivalLines = ({ queueId, sender, messageId, client, uid = 0 }: Discarded, more = ''): readonly LogLine[] => [
  client === null
    ? { program: 'pickup', text: `${queueId}: uid=${uid} from=<${sender}>${more}` }
    : { program: 'smtpd', text: `${queueId}: client=${clientText(client)}${more}` },
  { program: 'cleanup', text: `${queueId}: message-id=${messageId ?? '<>'}` },
]

export function acceptedLines(accepted: Accepted): readonly LogLine[] {
  const { message, client, uid, originalId, saslMethod = '', saslUsername, upstream = {} } = accepted
  const arrival = { queueId: queueIdOf(message), sender: message.sender, messageId: message.messageId, client, uid }
  if (client !== null) {
    const login = saslUsername === undefined ? '' : `, sasl_method=${saslMethod}, sasl_username=${saslUsername}`
    return arrivalLines(arrival, login + upstreamText(upstream))
  }
  // A message with neither was made by the relay, such as a notice.
  if (uid === undefined && originalId === undefined) return arrivalLines(arrival).slice(1)
  return arrivalLines(arrival, originalId === undefined ? '' : ` orig_id=${originalId}`)
}

/** Names the client that XFORWARD described; one without an address by its name only. */
function upstreamText({ client, queueId }: UpstreamMessage): string {
  const id = queueId === undefined ? '' : `, orig_queue_id=${queueId}`
  if (client === undefined) return id
  return `${id}, orig_client=${client.address === 'unknown' ? client.name : clientText(client)}`
}
