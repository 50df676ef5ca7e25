/**
 * Decides which notices are due and who receives them: NOTIFY (RFC 3461), no notice about a notice, postmaster copies (Postfix
 * notify_classes). `noticeDueFor` is used when an outcome is recorded, and `noticesFor` when the notices are composed. Pure.
 */
import type { Config } from '../config/options.ts'
import type { Notify } from '../mail/envelope.ts'
import type { NoticeDue, Recipient } from '../mail/message.ts'
import type { Duration } from '../system/clock.ts'
import { DoubleBounce } from '../config/double-bounce.ts'
import type { WarningAges } from './warning-times.ts'
import type { MessageWithNoticesDue } from '../store/recorded-outcomes.ts'

/** notify_classes; `bounce` implies `2bounce`. */
export type NoticeClasses = Config['notify_classes']

export interface OutcomeFacts {
  /**
   * `relayed`: accepted by a next hop that does not support DSN. `delivered`: accepted by a next hop that sends success notices
   * itself, or delivered finally.
   */
  readonly outcome: 'delivered' | 'relayed' | 'bounced' | 'expired' | 'deferred'
  /** NOTIFY parameter; absent when the client sent none. */
  readonly notify: Notify | undefined
  readonly sender: string
  /** True when a delay warning was sent and confirm_delay_cleared is on. */
  readonly delayCleared?: boolean | undefined
  /** True when the relay to the next hop is reported, unless NOTIFY is NEVER (BY of RFC 2852). */
  readonly relayReported?: boolean | undefined
}

type PostmasterRules = Pick<NoticeRules, 'classes' | 'doubleBounce'>

/** Whether NOTIFY requests the notice. Without NOTIFY, notices of failure and delay are sent (RFC 3461 §4.1). */
const wants = (notify: Notify | undefined, what: NoticeDue): boolean =>
  notify === undefined ? what !== 'success' : notify !== 'never' && notify.includes(what)

const copiesBounces = ({ classes }: PostmasterRules): boolean => classes.includes('bounce')
const reportsDoubleBounces = (rules: PostmasterRules): boolean => rules.classes.includes('2bounce') || copiesBounces(rules)

/** The notice that an outcome makes due, for the sender or the postmaster. `deferred` is passed when a delay warning is due. */
export function noticeDueFor(facts: OutcomeFacts, rules: PostmasterRules): NoticeDue | undefined {
  return rules.doubleBounce.has(facts.sender) ? undefined : DUE[facts.outcome](facts, rules)
}

type DueRule = (facts: OutcomeFacts, rules: PostmasterRules) => NoticeDue | undefined

const failureDue: DueRule = ({ sender, notify }, rules) => {
  const toPostmasterToo = sender === '' ? reportsDoubleBounces(rules) : copiesBounces(rules)
  return toPostmasterToo || (sender !== '' && wants(notify, 'failure')) ? 'failure' : undefined
}

const delayDue: DueRule = ({ sender, notify }, { classes }) =>
  sender !== '' && (wants(notify, 'delay') || classes.includes('delay')) ? 'delay' : undefined

const successDue: DueRule = ({ outcome, sender, notify, delayCleared, relayReported }, rules) => {
  if (relayReported === true && sender !== '' && notify !== 'never') return 'success'
  const asked = (outcome === 'relayed' && wants(notify, 'success')) || (delayCleared === true && wants(notify, 'delay'))
  return asked && (sender !== '' || reportsDoubleBounces(rules)) ? 'success' : undefined
}

const DUE: Readonly<Record<OutcomeFacts['outcome'], DueRule>> = {
  bounced: failureDue,
  expired: failureDue,
  deferred: delayDue,
  relayed: successDue,
  delivered: successDue,
}

/** Log text when a failure causes no notice. Undefined when a notice is sent, and when NOTIFY excludes notices. */
export function whyNotReported(facts: OutcomeFacts, rules: PostmasterRules): string | undefined {
  if (facts.outcome !== 'bounced' && facts.outcome !== 'expired') return undefined
  if (rules.doubleBounce.has(facts.sender)) return `undeliverable mail from ${facts.sender} is discarded`
  if (facts.sender === '' && noticeDueFor(facts, rules) === undefined) return 'an undeliverable notice is not reported to anybody'
  return undefined
}

/** A notice to compose. */
export interface Notice {
  readonly kind: NoticeDue
  readonly to: 'sender' | 'postmaster'
  /** Address of the notice's recipient. */
  readonly address: string
  /** Envelope sender of the notice: null, or double_bounce_sender for mail to the postmaster. */
  readonly from: string
  readonly recipients: readonly Recipient[]
  /** The part of the original that the notice returns. */
  readonly returns: 'full' | 'headers'
}

/** Rules for all notices of this relay. */
export interface NoticeRules {
  readonly classes: NoticeClasses
  readonly doubleBounce: DoubleBounce
  /** confirm_delay_cleared: whether a success notice is sent after a delay warning. */
  readonly confirmDelayCleared: boolean
  /** Maximum size in bytes of an original that is returned completely. */
  readonly sizeLimit: number
  readonly postmaster: { readonly bounce: string; readonly doubleBounce: string; readonly delay: string }
}

type NoticeConfig = Pick<
  Config,
  | 'myhostname'
  | 'myorigin'
  | 'notify_classes'
  | 'confirm_delay_cleared'
  | 'bounce_size_limit'
  | 'double_bounce_sender'
  | 'bounce_notice_recipient'
  | '2bounce_notice_recipient'
  | 'delay_notice_recipient'
>

export function noticeRules(config: NoticeConfig, doubleBounce = new DoubleBounce(config)): NoticeRules {
  const local = (address: string): string => (address.includes('@') ? address : `${address}@${config.myorigin}`)
  return {
    classes: config.notify_classes,
    doubleBounce,
    confirmDelayCleared: config.confirm_delay_cleared,
    sizeLimit: config.bounce_size_limit,
    postmaster: {
      bounce: local(config.bounce_notice_recipient),
      doubleBounce: local(config['2bounce_notice_recipient']),
      delay: local(config.delay_notice_recipient),
    },
  }
}

/** The notices to send for a message; empty when the rules suppress all of them. */
export function noticesFor(due: MessageWithNoticesDue, rules: NoticeRules): readonly Notice[] {
  // Undeliverable mail from double_bounce_sender causes no notice.
  if (rules.doubleBounce.has(due.message.sender)) return []
  const recipients = Map.groupBy(due.recipients, ({ noticeDue }) => noticeDue)
  return [
    ...failureNotices(due, recipients.get('failure') ?? [], rules),
    ...delayNotices(due, recipients.get('delay') ?? [], rules),
    ...successNotices(due, recipients.get('success') ?? [], rules),
  ]
}

function failureNotices(due: MessageWithNoticesDue, recipients: readonly Recipient[], rules: NoticeRules): readonly Notice[] {
  if (recipients.length === 0) return []
  const { message } = due
  const small = message.size <= rules.sizeLimit
  if (message.sender === '') {
    if (!reportsDoubleBounces(rules)) return []
    return [toPostmaster(rules, 'doubleBounce', { kind: 'failure', recipients, returns: small ? 'full' : 'headers' })]
  }
  const returns = small && message.ret !== 'hdrs' ? 'full' : 'headers'
  const copies = copiesBounces(rules) ? [toPostmaster(rules, 'bounce', { kind: 'failure', recipients, returns: 'headers' })] : []
  return [...ifWanted('failure', due, recipients, returns), ...copies]
}

function delayNotices(due: MessageWithNoticesDue, recipients: readonly Recipient[], rules: NoticeRules): readonly Notice[] {
  if (recipients.length === 0 || due.message.sender === '') return []
  const copies = rules.classes.includes('delay') ? [toPostmaster(rules, 'delay', { kind: 'delay', recipients, returns: 'headers' })] : []
  return [...ifWanted('delay', due, recipients, 'headers'), ...copies]
}

/**
 * Notices of success. The due mark already follows NOTIFY: it is set for SUCCESS, for DELAY after a warning
 * (confirm_delay_cleared), and for a reported relay.
 */
function successNotices(due: MessageWithNoticesDue, recipients: readonly Recipient[], rules: NoticeRules): readonly Notice[] {
  if (recipients.length === 0) return []
  if (due.message.sender !== '') return [toSender('success', due, recipients, 'headers')]
  if (!reportsDoubleBounces(rules)) return []
  return [toPostmaster(rules, 'doubleBounce', { kind: 'success', recipients, returns: 'headers' })]
}

const toSender = (
  kind: NoticeDue,
  { message }: MessageWithNoticesDue,
  recipients: readonly Recipient[],
  returns: Notice['returns'],
): Notice => ({
  kind,
  to: 'sender',
  address: message.sender,
  from: '',
  recipients,
  returns,
})

/** The notice about the recipients whose NOTIFY requests it, as a list: empty without such recipients. */
function ifWanted(kind: NoticeDue, due: MessageWithNoticesDue, all: readonly Recipient[], returns: Notice['returns']): readonly Notice[] {
  const recipients = all.filter(({ notify }) => wants(notify, kind))
  return recipients.length > 0 ? [toSender(kind, due, recipients, returns)] : []
}

/** A copy for the postmaster. It lists every recipient, independent of NOTIFY (Postfix DSN_NOTIFY_OVERRIDE). */
const toPostmaster = (
  { postmaster, doubleBounce }: NoticeRules,
  role: keyof NoticeRules['postmaster'],
  notice: Pick<Notice, 'kind' | 'recipients' | 'returns'>,
): Notice => ({ ...notice, to: 'postmaster', address: postmaster[role], from: doubleBounce.address })

/** The positive ages of delay_warning_time, ascending. An age of 0 disables the warning. */
const agesIn = (times: readonly Duration[]): readonly Duration[] => [...new Set(times)].filter((age) => age > 0).toSorted((a, b) => a - b)

/** Ages by delay_warning_time of the class of a message, and of the relay. */
export function warningAges(config: Pick<Config, 'delay_warning_time' | 'class' | 'default_class'>): WarningAges {
  const ofRelay = agesIn(config.delay_warning_time)
  const { class: tables, default_class: byDefault } = config
  const ofClasses = new Map(
    [...tables].map(([name, { settings: own }]) => [name, own.delay_warning_time === undefined ? ofRelay : agesIn(own.delay_warning_time)]),
  )
  return ({ class: name = byDefault }) => ofClasses.get(name) ?? ofClasses.get(byDefault) ?? ofRelay
}
