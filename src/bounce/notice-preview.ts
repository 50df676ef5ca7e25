/**
 * Writes a notice about an example message, for `deferd bounce preview`.
 */
import { HOUR, type Clock, type Duration } from '../system/clock.ts'
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import { queueIdOf, recipientId, type NoticeDue, type Message, type Recipient } from '../mail/message.ts'
import { writeDsn } from './dsn.ts'
import type { NoticeSettings } from './notice-writer.ts'
import type { ReturnedOriginal } from './returned-original.ts'

const HEADER =
  'Received: from client.example (client.example [192.0.2.1])\r\n\tby relay.example with ESMTP\r\n' +
  'From: You <you@example.com>\r\nTo: ann@example.net\r\nSubject: A message of yours\r\n'
const BODY = '\r\nThis stands for the text of your message.\r\n'

const BUSY: DeliveryStatus = {
  status: '4.2.1',
  reason: 'host mx.example.net[192.0.2.25] said: 450 4.2.1 mailbox busy, try again later (in reply to RCPT TO command)',
  reply: '450 4.2.1 mailbox busy, try again later',
  remoteMta: 'mx.example.net',
  stage: 'rcpt',
}
const UNKNOWN: DeliveryStatus = {
  status: '5.1.1',
  reason: 'host mx.example.net[192.0.2.25] said: 550 5.1.1 <bob@example.net>: no such user (in reply to RCPT TO command)',
  reply: '550 5.1.1 <bob@example.net>: no such user',
  remoteMta: 'mx.example.net',
  stage: 'rcpt',
}
const TAKEN: DeliveryStatus = {
  status: '2.0.0',
  reason: 'delivery via mx.example.net[192.0.2.25]:25: 250 2.0.0 Ok: queued',
  reply: '250 2.0.0 Ok: queued',
  remoteMta: 'mx.example.net',
  stage: 'end-of-data',
}

interface PreviewOptions {
  readonly clock: Clock
  /** maximal_queue_lifetime. */
  readonly lifetime: Duration
}

/** The notice as it would be sent. */
export function previewNotice(kind: NoticeDue, settings: NoticeSettings, { clock, lifetime }: PreviewOptions): Uint8Array {
  const at = clock.now()
  const arrivedAt = at - (kind === 'delay' ? 4 * HOUR : lifetime)
  const message: Message = {
    id: 1,
    createdAt: arrivedAt,
    arrivedAt,
    sender: 'you@example.com',
    size: HEADER.length + BODY.length,
    contentId: 1,
    smtputf8: false,
  }
  const original: ReturnedOriginal = kind === 'failure' ? { text: HEADER + BODY, whole: true } : { text: HEADER, whole: false }
  const progress = {
    destination: 'example.net',
    dueAt: at,
    expiresAt: arrivedAt + lifetime,
    steps: 0,
    deliveryStarts: 0,
    settledAt: at,
    noticeDue: kind,
  }
  const about = (position: number, one: Pick<Recipient, 'address' | 'state' | 'attempts' | 'last'>): Recipient => ({
    ...progress,
    ...one,
    id: recipientId(message.id, position),
  })
  const recipients: Readonly<Record<NoticeDue, readonly Recipient[]>> = {
    failure: [
      about(0, { address: 'ann@example.net', state: 'expired', attempts: 46, last: BUSY }),
      about(1, { address: 'bob@example.net', state: 'bounced', attempts: 1, last: UNKNOWN }),
    ],
    delay: [about(0, { address: 'ann@example.net', state: 'waiting', attempts: 7, last: BUSY })],
    success: [about(0, { address: 'ann@example.net', state: 'delivered', attempts: 1, last: TAKEN })],
  }
  const { content } = writeDsn({
    notice: {
      kind,
      to: 'sender',
      address: message.sender,
      from: '',
      recipients: recipients[kind],
      returns: original.whole ? 'full' : 'headers',
    },
    message,
    original,
    template: settings.templates[kind],
    reportingMta: settings.reportingMta,
    threaded: settings.threaded,
    queueId: queueIdOf({ id: 2, createdAt: at }),
    at,
    clock,
  })
  return content
}
