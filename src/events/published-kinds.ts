/**
 * Data of the events that programs can subscribe to, and the kinds of events of the relay from which they are made. The members are those of
 * the records of `log_format = "json"`; times are in seconds since 1970. Members and types may be added, but are never removed or renamed.
 */
import { isoInstant } from '../mail/mail-date.ts'
import { queueIdOf, type DestinationName, type Message, type MessageSummary, type NoticeDue } from '../mail/message.ts'
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import { SECOND, type Duration, type WallTime } from '../system/clock.ts'
import { formatDuration } from '../system/duration.ts'
import { acceptedLines, type Accepted } from './arrival-lines.ts'
import { about, CLIENT, line, same, seconds, type EventKind, type Members } from './event-kind.ts'
import { MESSAGE, type AcceptedMembers, type MessageMembers, type RecipientMembers } from './event-members.ts'

/** Members of a limit of the queue that was reached, or is not reached any more. */
export interface LimitMembers {
  /** Null for a limit of the whole queue. */
  readonly share: string | null
  readonly measure: 'messages' | 'bytes'
  readonly used: number
  readonly limit: number
}

/** Use of a limit of a quota by a key. */
export interface QuotaMembers {
  readonly quota: string
  readonly key: string
  readonly measure: 'messages' | 'recipients'
  /** In seconds. */
  readonly span: number
  readonly used: number
  readonly limit: number
}

/** Members of a change of the suppression list. */
export interface SuppressionMembers {
  /** Null for a change of several entries. */
  readonly scope: string | null
  readonly address: string | null
  readonly reason: string | null
  readonly by: string
  readonly until: number | null
  /** The reply that refused the address. */
  readonly text: string | null
  /** Number of entries. */
  readonly entries: number
}

/** Members of the data of each type. */
export interface EventData {
  readonly 'message.accepted': AcceptedMembers
  readonly 'message.removed': MessageMembers
  readonly 'message.quarantined': MessageMembers & { readonly text: string }
  readonly 'message.cancelled': { readonly queue_id: string; readonly by: string; readonly recipients: readonly string[] }
  readonly 'message.operated': { readonly queue_id: string; readonly operation: string; readonly by: string }
  readonly 'recipient.delivered': RecipientMembers
  readonly 'recipient.deferred': RecipientMembers
  readonly 'recipient.bounced': RecipientMembers
  readonly 'recipient.expired': RecipientMembers
  readonly 'recipient.suppressed': {
    readonly sender: string
    readonly recipient: string
    readonly scope: string
    readonly reason: string
    readonly action: 'refused' | 'warned'
    readonly text: string | null
  }
  readonly 'suppression.added': SuppressionMembers
  readonly 'suppression.removed': SuppressionMembers
  readonly 'suppression.stopped': { readonly scope: string; readonly entries: number }
  readonly 'notice.sent': MessageMembers & {
    readonly notice: 'failure' | 'delay' | 'success'
    readonly to: 'sender' | 'postmaster'
    /** Queue id of the notice. */
    readonly notice_id: string
  }
  readonly 'notice.dropped': MessageMembers & { readonly text: string }
  readonly 'destination.died': { readonly destination: string; readonly until: number; readonly text: string }
  readonly 'destination.revived': { readonly destination: string }
  readonly 'destination.suspended': {
    readonly destination: string
    readonly by: string
    readonly until: number | null
    readonly text: string | null
  }
  readonly 'destination.resumed': { readonly destination: string; readonly by: string }
  readonly 'provider.suspended': {
    readonly provider: string
    readonly by: string
    readonly until: number | null
    readonly text: string | null
  }
  readonly 'provider.resumed': { readonly provider: string; readonly by: string }
  readonly 'oauth.failed': {
    readonly oauth: string
    readonly user: string | null
    readonly result: 'temporary' | 'refused'
    readonly text: string
  }
  readonly 'schedule.failed': {
    readonly schedule: string
    /** Null when the configuration has no such table any more. */
    readonly action: string | null
    readonly planned_time: number
    readonly text: string
  }
  readonly 'queue.limit_reached': LimitMembers
  readonly 'queue.limit_cleared': LimitMembers
  /** `percent` is 80 or 100: at 100, mail is refused or held. */
  readonly 'quota.reached': QuotaMembers & { readonly percent: number }
  readonly 'quota.cleared': QuotaMembers
  readonly 'store.trouble': { readonly text: string }
  readonly 'store.recovered': Readonly<Record<string, never>>
  /** Events that were deleted before the subscription had them: the first and last number, and how many it had asked for. */
  readonly 'events.lost': { readonly from: number; readonly to: number; readonly count: number }
}

/** A type with the members of its data. The queue keeps the values in this order, so new members are added at the end. */
export interface Published<T extends keyof EventData, E> {
  readonly type: T
  /** Meaning for docs/events.md; that of the record unless given. */
  readonly meaning: string
  readonly record: Members<E, EventData[T]>
}

/** The entry of a kind `E` of which programs get one event, of type `T`. */
const published =
  <E>() =>
  <T extends keyof EventData>(
    type: T,
    kind: Omit<EventKind<E>, 'record'> & Pick<Published<T, E>, 'record'> & { readonly meaning?: string },
  ) => ({ type, meaning: kind.about, ...kind })

export const ARRIVALS = {
  accepted: published<Accepted>()('message.accepted', {
    level: 'info',
    about:
      'a message was accepted into the queue; a requeued one has an `original_id`, and one that XFORWARD described has `upstream_…` members',
    meaning: 'a message was accepted into the queue; a requeued one has an `original_id`',
    record: {
      ...MESSAGE,
      size: ({ message }) => message.size,
      message_id: ({ message }) => message.messageId ?? null,
      ...same('recipients'),
      ...CLIENT,
      uid: ({ uid }) => uid ?? null,
      original_id: ({ originalId }) => originalId ?? null,
      sasl_username: ({ saslUsername }) => saslUsername ?? null,
      upstream_queue_id: ({ upstream }) => upstream?.queueId ?? null,
      upstream_client_name: ({ upstream }) => upstream?.client?.name ?? null,
      upstream_client_address: ({ upstream }) => upstream?.client?.address ?? null,
    },
    lines: acceptedLines,
  }),
}

export const DEPARTURES = {
  removed: published<{ readonly message: Message }>()('message.removed', {
    level: 'info',
    about: 'a message left the queue',
    meaning: 'a message left the queue: no recipient is left in it, and no notice is due',
    record: MESSAGE,
    lines: ({ message }) => line('qmgr', about(message, 'removed')),
  }),
  quarantined: published<{ readonly message: Message; readonly why: string }>()('message.quarantined', {
    level: 'error',
    about: 'a message could not be read and was moved to the corrupt queue',
    meaning: 'a message could not be read, or ended the daemon three times, and was moved to the corrupt queue',
    record: { ...MESSAGE, text: ({ why }) => why },
    lines: ({ message, why }) => line('qmgr', `warning: ${about(message, `moved to the corrupt queue: ${why}`)}`),
  }),
}

const NOTICE_NAMES = { failure: 'non-delivery notification', delay: 'delay notification', success: 'delivery status notification' } as const

export const NOTICES = {
  'notice-sent': published<{
    readonly message: Message
    readonly notice: NoticeDue
    readonly to: 'sender' | 'postmaster'
    /** The notice, which is a message of its own. */
    readonly queued: { readonly message: MessageSummary; readonly recipients: readonly string[] }
  }>()('notice.sent', {
    level: 'info',
    about: 'a notice (DSN) was queued',
    meaning: 'a notice (DSN) about a message was queued',
    record: { ...MESSAGE, ...same('notice', 'to'), notice_id: ({ queued }) => queueIdOf(queued.message) },
    lines: ({ message, notice, to, queued }) =>
      line('bounce', about(message, `${to} ${NOTICE_NAMES[notice]}: ${queueIdOf(queued.message)}`)),
  }),
  'notice-dropped': published<{ readonly message: Message; readonly why: string }>()('notice.dropped', {
    level: 'info',
    about: 'no notice is sent, with the reason',
    record: { ...MESSAGE, text: ({ why }) => why },
    lines: ({ message, why }) => line('bounce', about(message, `no notification is sent: ${why}`)),
  }),
}

/** Texts of postsuper(1), and texts in its style for restore and flush, which it does not have. */
const OPERATION_TEXTS: Readonly<Record<string, string>> = {
  delete: 'removed',
  expire: 'expired',
  hold: 'placed on hold',
  release: 'released from hold',
  requeue: 'requeued',
  restore: 'restored',
  flush: 'flushed',
  reschedule: 'rescheduled',
  reclass: 'given another class',
}

export const OPERATIONS = {
  operated: published<{ readonly queueId: string; readonly operation: string; readonly by: string }>()('message.operated', {
    level: 'info',
    about: 'an operator changed a message',
    record: { queue_id: ({ queueId }) => queueId, ...same('operation', 'by') },
    lines: ({ queueId, operation }) => line('postsuper', `${queueId}: ${OPERATION_TEXTS[operation] ?? operation}`),
  }),
  /** Recipients were removed at the request of the submitter of the message. */
  cancelled: published<{ readonly queueId: string; readonly by: string; readonly recipients: readonly string[] }>()('message.cancelled', {
    level: 'info',
    about: 'the submitter of a message cancelled it, for the recipients of which no attempt had begun',
    record: { queue_id: ({ queueId }) => queueId, ...same('by', 'recipients') },
    lines: ({ queueId, by, recipients }) => line('qmgr', `${queueId}: message cancelled by ${by}, nrcpt=${recipients.length}`),
  }),
}

const suspendedText = ({
  by,
  until,
  reason,
}: {
  readonly by: string
  readonly until: WallTime | null
  readonly reason: string | null
}): string => `was suspended by ${by}${until === null ? '' : ` until ${isoInstant(until)}`}${reason === null ? '' : `: ${reason}`}`

export const DESTINATIONS = {
  died: published<{ readonly destination: DestinationName; readonly until: WallTime; readonly siteStatus: DeliveryStatus }>()(
    'destination.died',
    {
      level: 'warn',
      about: 'a destination is dead: it is not tried until then',
      meaning: 'a destination is dead, or a probe of it failed: it is not tried until then',
      record: {
        ...same('destination'),
        until: ({ until }) => seconds(until),
        text: ({ siteStatus }) => siteStatus.reason,
      },
      lines: ({ destination, until, siteStatus }) =>
        line('qmgr', `destination ${destination} is dead until ${isoInstant(until)}: ${siteStatus.reason}`),
    },
  ),
  /** A dead destination was opened: by an answer to a delivery or, without an answer, by order of an operator. */
  revived: published<{ readonly destination: DestinationName; readonly answered: boolean }>()('destination.revived', {
    level: 'info',
    about: 'a dead destination answered and is open; not written when a flush opens it',
    meaning: 'a dead destination is open again',
    record: same('destination'),
    // A flush opens a destination for one attempt, which may fail: only an answer is logged.
    rows: (event) => (event.answered ? [event] : []),
    lines: ({ destination, answered }) => (answered ? line('qmgr', `destination ${destination} is open again`) : []),
  }),
  suspended: published<{
    readonly destination: DestinationName
    readonly by: string
    readonly until: WallTime | null
    readonly reason: string | null
  }>()('destination.suspended', {
    level: 'info',
    about: 'an operator suspended a destination',
    record: {
      ...same('destination', 'by'),
      until: ({ until }) => (until === null ? null : seconds(until)),
      text: ({ reason }) => reason,
    },
    lines: ({ destination, ...suspension }) => line('qmgr', `destination ${destination} ${suspendedText(suspension)}`),
  }),
  resumed: published<{ readonly destination: DestinationName; readonly by: string }>()('destination.resumed', {
    level: 'info',
    about: 'a destination was resumed by an operator or by the end of its suspension',
    meaning: 'a suspended destination is open again',
    record: same('destination', 'by'),
    lines: ({ destination, by }) => line('qmgr', `destination ${destination} was resumed by ${by}`),
  }),
  'provider-suspended': published<{
    readonly provider: string
    readonly by: string
    readonly until: WallTime | null
    readonly reason: string | null
  }>()('provider.suspended', {
    level: 'info',
    about: 'an operator or a reply rule suspended a provider, and with it all its destinations',
    record: {
      ...same('provider', 'by'),
      until: ({ until }) => (until === null ? null : seconds(until)),
      text: ({ reason }) => reason,
    },
    lines: ({ provider, ...suspension }) => line('qmgr', `provider ${provider} ${suspendedText(suspension)}`),
  }),
  'provider-resumed': published<{ readonly provider: string; readonly by: string }>()('provider.resumed', {
    level: 'info',
    about: 'a provider was resumed by an operator, or by the end of its suspension',
    meaning: 'a suspended provider is open again; destinations that are suspended themselves stay so',
    record: same('provider', 'by'),
    lines: ({ provider, by }) => line('qmgr', `provider ${provider} was resumed by ${by}`),
  }),
}

/** Names the login of an access token. */
export const loginText = ({ oauth, user }: { readonly oauth: string; readonly user: string | null }): string =>
  user === null ? `oauth=${oauth}` : `oauth=${oauth}, user=${user}`

export const TOKENS = {
  /** A request for an access token failed: for now, or because the authority refuses it. */
  'oauth-failed': published<{
    readonly oauth: string
    /** Null where the token is not that of a single user. */
    readonly user: string | null
    readonly result: 'temporary' | 'refused'
    /** Cause, and what to do. */
    readonly text: string
    /** True for the first failure that mail feels since a token came. Programs are told of this one only. */
    readonly isFirst: boolean
  }>()('oauth.failed', {
    level: 'warn',
    about:
      'a request for an access token failed: `result` is `temporary`, or `refused` when the authority refuses it until something is changed',
    meaning:
      'mail of a table `[oauth.NAME]` has no access token, or the authority refuses another one; once until a token comes, on each node',
    record: same('oauth', 'user', 'result', 'text'),
    lines: (event) => line('smtp', `warning: ${loginText(event)}: no access token: ${event.text}`),
  }),
}

export const SCHEDULES = {
  /** A run of a table `[schedule.NAME]` failed, or its node ended before it. */
  'schedule-failed': published<{
    readonly schedule: string
    readonly action: string | null
    readonly planned: WallTime
    readonly text: string
  }>()('schedule.failed', {
    level: 'error',
    about: 'a run of a table `[schedule.NAME]` failed; `planned_time` is the time of the calendar',
    record: { ...same('schedule', 'action'), planned_time: ({ planned }) => seconds(planned), text: ({ text }) => text },
    lines: ({ schedule, action, text }) =>
      line('master', `error: schedule ${schedule}${action === null ? '' : ` (${action})`} failed: ${text}`),
  }),
}

const LIMIT = same('share', 'measure', 'used', 'limit')
const limitText = ({ share, measure, used, limit }: LimitMembers): string =>
  `${share === null ? 'the queue' : `share ${share}`} has ${used} of ${limit} ${measure}`

export const LIMITS = {
  'limit-reached': published<LimitMembers>()('queue.limit_reached', {
    level: 'warn',
    about: 'a limit of the queue, or of a share in it, began to refuse mail',
    record: LIMIT,
    lines: (event) => line('smtpd', `warning: mail is refused for now: ${limitText(event)}`),
  }),
  'limit-cleared': published<LimitMembers>()('queue.limit_cleared', {
    level: 'info',
    about: 'a limit of the queue, or of a share in it, is open again; `limit` is 0 when it is not set any more',
    record: LIMIT,
    lines: (event) => line('smtpd', `mail is accepted again: ${limitText(event)}`),
  }),
}

type QuotaUse = Omit<QuotaMembers, 'span'> & { readonly span: Duration }

const QUOTA = {
  ...same('quota', 'key', 'measure'),
  span: ({ span }: QuotaUse) => span / SECOND,
  ...same('used', 'limit'),
}
const quotaText = ({ quota, key, measure, span, used, limit }: QuotaUse): string =>
  `quota ${quota}: ${key} has used ${used} of ${limit} ${measure} in ${formatDuration(span)}`

/** Room that is left, and no mail has: it is behind mail that is held. */
const promisedText = ({ percent, used, limit }: QuotaUse & { readonly percent: 80 | 100 }): string =>
  percent === 100 && used < limit ? ', and has no room before the mail that is held' : ''

export const QUOTAS = {
  'quota-reached': published<QuotaUse & { readonly percent: 80 | 100 }>()('quota.reached', {
    level: 'warn',
    about: 'a key has used 80 or 100 percent of a limit of a quota, once in each twelfth of its time; at 100, mail is refused or held',
    record: { ...QUOTA, ...same('percent') },
    lines: (event) => line('smtpd', `warning: ${quotaText(event)}${promisedText(event)}`),
  }),
  'quota-cleared': published<QuotaUse>()('quota.cleared', {
    level: 'info',
    about: 'a key that had used much of a limit of a quota has used less than 80 percent of it again',
    record: QUOTA,
    lines: (event) => line('smtpd', quotaText(event)),
  }),
}

type SuppressionChange = Omit<SuppressionMembers, 'until'> & { readonly until: WallTime | null }

const SUPPRESSION = {
  ...same('scope', 'address', 'reason', 'by'),
  until: ({ until }: SuppressionChange) => (until === null ? null : seconds(until)),
  ...same('text', 'entries'),
}
const changedText = ({ scope, address, reason, by, entries }: SuppressionChange): string =>
  address === null ? `${entries} entries by ${by}` : `${address} for ${scope} (${reason}) by ${by}`

export const SUPPRESSIONS = {
  suppressed: published<EventData['recipient.suppressed']>()('recipient.suppressed', {
    level: 'info',
    about:
      'a recipient is on the suppression list: it was refused, or left out when mail was sent again; with `suppression = warn` accepted all the same',
    record: same('sender', 'recipient', 'scope', 'reason', 'action', 'text'),
    // The refusal has a line of its own.
    lines: ({ sender, recipient, scope, reason, action }) =>
      action === 'refused'
        ? []
        : line('smtpd', `warning: from=<${sender}>, to=<${recipient}>: on the suppression list of ${scope} (${reason}); accepted`),
  }),
  'suppression-added': published<SuppressionChange>()('suppression.added', {
    level: 'info',
    about: 'an address was put on the suppression list, or `entries` addresses by one import, which names none',
    record: SUPPRESSION,
    lines: (event) => line('qmgr', `suppression list: added ${changedText(event)}`),
  }),
  'suppression-removed': published<SuppressionChange>()('suppression.removed', {
    level: 'info',
    about: 'an address was removed from the suppression list: by an operator, or by a delivery to it; `entries` addresses by one command',
    record: SUPPRESSION,
    lines: (event) => line('qmgr', `suppression list: removed ${changedText(event)}`),
  }),
  'suppression-stopped': published<EventData['suppression.stopped']>()('suppression.stopped', {
    level: 'warn',
    about: 'too many addresses of a sender domain were listed within an hour: no more are, until `deferd suppression resume`',
    record: same('scope', 'entries'),
    lines: ({ scope, entries }) =>
      line(
        'qmgr',
        `warning: suppression list: ${entries} addresses of ${scope} within an hour; no more are listed until deferd suppression resume`,
      ),
  }),
}

export const STORE = {
  'store-unavailable': published<{ readonly why: string }>()('store.trouble', {
    level: 'error',
    about: 'a commit failed: mail is refused and not delivered',
    meaning: 'the queue could not be written; mail was refused meanwhile',
    record: { text: ({ why }) => why },
    lines: ({ why }) => line('master', `error: store unavailable, mail is refused and not delivered: ${why}`),
  }),
  'store-recovered': published<object>()('store.recovered', {
    level: 'info',
    about: 'commits succeed again',
    meaning: 'the queue can be written again',
    record: {},
    lines: () => line('master', 'store available again'),
  }),
}

/** Kinds about messages, and the others, each in the order of the documentation. */
export const MAIL_KINDS = { ...ARRIVALS, ...DEPARTURES, ...OPERATIONS }
export const RELAY_KINDS = { ...NOTICES, ...DESTINATIONS, ...TOKENS, ...SCHEDULES, ...LIMITS, ...QUOTAS, ...SUPPRESSIONS, ...STORE }

/** The kinds of which programs get one event each. */
export const PUBLISHED_KINDS = { ...MAIL_KINDS, ...RELAY_KINDS }
