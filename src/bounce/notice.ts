/**
 * What MAILER-DAEMON owes, and to whom: NOTIFY (RFC 3461), no notice about a notice, copies for the postmaster
 * (Postfix notify_classes). `debtFor` is asked when an outcome is recorded, `noticesFor` when the debts are paid. Nothing
 * here acts.
 */
import type { Config } from '../config/options.ts'
import type { Instant } from '../mail/clock.ts'
import type { Notify } from '../mail/envelope.ts'
import type { Debt, Recipient } from '../queue/message.ts'
import type { IndebtedMessage } from '../queue/store.ts'

/** What the postmaster wants to hear of; `bounce` implies `2bounce`. */
export type NoticeClasses = Config['notify_classes']

export interface OutcomeFacts {
  /** `relayed`: handed to a next hop that takes no reports over; `delivered`: nobody need be told of success. */
  readonly outcome: 'delivered' | 'relayed' | 'bounced' | 'expired' | 'deferred'
  readonly notify: Notify | undefined
  readonly sender: string
  readonly doubleBounceSender: string
  /** The sender was warned, and confirm_delay_cleared asks to call that off. */
  readonly delayCleared?: boolean | undefined
  /** None when absent. */
  readonly classes?: NoticeClasses | undefined
}

/** RFC 3461 §4.1: without NOTIFY the sender hears of failure and delay. */
const wants = (notify: Notify | undefined, what: Debt): boolean =>
  notify === undefined ? what !== 'success' : notify !== 'never' && notify.includes(what)

const isDoubleBounce = (sender: string, doubleBounceSender: string): boolean => sender.toLowerCase() === doubleBounceSender.toLowerCase()

const hearsOfBounces = (classes: NoticeClasses): boolean => classes.includes('bounce')
const hearsOfDoubleBounces = (classes: NoticeClasses): boolean => classes.includes('2bounce') || hearsOfBounces(classes)

/**
 * The word that is owed for a recipient after an outcome, to the sender or to the postmaster. Of a `deferred` one it
 * is asked when a delay warning is due.
 */
export function debtFor(facts: OutcomeFacts): Debt | undefined {
  if (isDoubleBounce(facts.sender, facts.doubleBounceSender)) return undefined
  return OWED[facts.outcome](facts)
}

const failureOwed = ({ sender, notify, classes = [] }: OutcomeFacts): Debt | undefined => {
  const postmasterHears = sender === '' ? hearsOfDoubleBounces(classes) : hearsOfBounces(classes)
  return postmasterHears || (sender !== '' && wants(notify, 'failure')) ? 'failure' : undefined
}

const delayOwed = ({ sender, notify, classes = [] }: OutcomeFacts): Debt | undefined =>
  sender !== '' && (wants(notify, 'delay') || classes.includes('delay')) ? 'delay' : undefined

const successOwed = ({ outcome, sender, notify, delayCleared, classes = [] }: OutcomeFacts): Debt | undefined => {
  const asked = (outcome === 'relayed' && wants(notify, 'success')) || (delayCleared === true && wants(notify, 'delay'))
  return asked && (sender !== '' || hearsOfDoubleBounces(classes)) ? 'success' : undefined
}

const OWED: Readonly<Record<OutcomeFacts['outcome'], (facts: OutcomeFacts) => Debt | undefined>> = {
  bounced: failureOwed,
  expired: failureOwed,
  deferred: delayOwed,
  relayed: successOwed,
  delivered: successOwed,
}

/** Why nobody hears of a failure, for the log; undefined when somebody does, or when the sender did not want to. */
export function whyNobodyIsTold(facts: OutcomeFacts): string | undefined {
  if (facts.outcome !== 'bounced' && facts.outcome !== 'expired') return undefined
  if (isDoubleBounce(facts.sender, facts.doubleBounceSender)) return `undeliverable mail from ${facts.doubleBounceSender} is discarded`
  if (facts.sender === '' && debtFor(facts) === undefined) return 'an undeliverable notice is not reported to anybody'
  return undefined
}

/** One message that MAILER-DAEMON is to write. */
export interface Notice {
  readonly kind: Debt
  readonly to: 'sender' | 'postmaster'
  /** Where it goes. */
  readonly address: string
  /** Its reverse-path: null, or the double-bounce sender for mail to the postmaster. */
  readonly from: string
  readonly recipients: readonly Recipient[]
  /** How much of the original it returns. */
  readonly returns: 'full' | 'headers'
}

/** What holds for all notices of this relay. */
export interface NoticeRules {
  readonly classes: NoticeClasses
  readonly doubleBounceSender: string
  /** The largest original that is returned whole, in bytes. */
  readonly sizeLimit: number
  readonly postmaster: { readonly bounce: string; readonly doubleBounce: string; readonly delay: string }
}

type NoticeConfig = Pick<
  Config,
  | 'myhostname'
  | 'myorigin'
  | 'notify_classes'
  | 'bounce_size_limit'
  | 'double_bounce_sender'
  | 'bounce_notice_recipient'
  | '2bounce_notice_recipient'
  | 'delay_notice_recipient'
>

/** The full address of the sender of mail to the postmaster. */
export const doubleBounceAddress = (config: Pick<Config, 'double_bounce_sender' | 'myhostname'>): string =>
  `${config.double_bounce_sender}@${config.myhostname}`

export function noticeRules(config: NoticeConfig): NoticeRules {
  const local = (address: string): string => (address.includes('@') ? address : `${address}@${config.myorigin}`)
  return {
    classes: config.notify_classes,
    doubleBounceSender: doubleBounceAddress(config),
    sizeLimit: config.bounce_size_limit,
    postmaster: {
      bounce: local(config.bounce_notice_recipient),
      doubleBounce: local(config['2bounce_notice_recipient']),
      delay: local(config.delay_notice_recipient),
    },
  }
}

/** The notices that pay the debts of a message; none when all of them concern mail that nobody is told of. */
export function noticesFor(owing: IndebtedMessage, rules: NoticeRules): readonly Notice[] {
  const owed = (debt: Debt): readonly Recipient[] => owing.recipients.filter((recipient) => recipient.debt === debt)
  return [
    ...failureNotices(owing, owed('failure'), rules),
    ...delayNotices(owing, owed('delay'), rules),
    ...successNotices(owing, owed('success'), rules),
  ]
}

/** Nobody is told of undeliverable mail to the postmaster. */
const isSilent = ({ message }: IndebtedMessage, rules: NoticeRules): boolean => isDoubleBounce(message.sender, rules.doubleBounceSender)

function failureNotices(owing: IndebtedMessage, recipients: readonly Recipient[], rules: NoticeRules): readonly Notice[] {
  if (recipients.length === 0 || isSilent(owing, rules)) return []
  const { message } = owing
  const small = message.size <= rules.sizeLimit
  if (message.sender === '') {
    if (!hearsOfDoubleBounces(rules.classes)) return []
    return [toPostmaster('failure', rules.postmaster.doubleBounce, recipients, small ? 'full' : 'headers', rules)]
  }
  const returns = small && message.ret !== 'hdrs' ? 'full' : 'headers'
  const copies = hearsOfBounces(rules.classes) ? [toPostmaster('failure', rules.postmaster.bounce, recipients, 'headers', rules)] : []
  return [...ifWanted('failure', owing, recipients, returns), ...copies]
}

function delayNotices(owing: IndebtedMessage, recipients: readonly Recipient[], rules: NoticeRules): readonly Notice[] {
  if (recipients.length === 0 || isSilent(owing, rules) || owing.message.sender === '') return []
  const copies = rules.classes.includes('delay') ? [toPostmaster('delay', rules.postmaster.delay, recipients, 'headers', rules)] : []
  return [...ifWanted('delay', owing, recipients, 'headers'), ...copies]
}

/** Success was filtered when the debt was made: it is owed for SUCCESS, and for DELAY when a warning is called off. */
function successNotices(owing: IndebtedMessage, recipients: readonly Recipient[], rules: NoticeRules): readonly Notice[] {
  if (recipients.length === 0 || isSilent(owing, rules)) return []
  if (owing.message.sender !== '') return [toSender('success', owing, recipients, 'headers')]
  if (!hearsOfDoubleBounces(rules.classes)) return []
  return [toPostmaster('success', rules.postmaster.doubleBounce, recipients, 'headers', rules)]
}

const toSender = (kind: Debt, { message }: IndebtedMessage, recipients: readonly Recipient[], returns: Notice['returns']): Notice => ({
  kind,
  to: 'sender',
  address: message.sender,
  from: '',
  recipients,
  returns,
})

/** The notice for those recipients of which the sender wants to hear; none when there are none. */
function ifWanted(kind: Debt, owing: IndebtedMessage, all: readonly Recipient[], returns: Notice['returns']): readonly Notice[] {
  const recipients = all.filter(({ notify }) => wants(notify, kind))
  return recipients.length > 0 ? [toSender(kind, owing, recipients, returns)] : []
}

/** The postmaster hears of every recipient, whatever the sender wished (Postfix DSN_NOTIFY_OVERRIDE). */
const toPostmaster = (
  kind: Debt,
  address: string,
  recipients: readonly Recipient[],
  returns: Notice['returns'],
  rules: NoticeRules,
): Notice => ({ kind, to: 'postmaster', address, from: rules.doubleBounceSender, recipients, returns })

/** When the next warning of a message is due, `warnings` of the ascending ages being used up; null when none is. */
export function nextWarning(ages: readonly number[], arrivedAt: Instant, warnings: number): Instant | null {
  const age = ages[warnings]
  return age === undefined ? null : arrivedAt + age
}

/** The ages of delay_warning_time that mean something, ascending; 0 is never. */
export const warningAges = (config: Pick<Config, 'delay_warning_time'>): readonly number[] =>
  [...new Set(config.delay_warning_time)].filter((age) => age > 0).toSorted((a, b) => a - b)

/** How many warnings are used up once one is sent at `now`: ages that passed unnoticed are not made up for. */
export const warningsUsed = (ages: readonly number[], arrivedAt: Instant, now: Instant, before: number): number =>
  Math.max(before, ages.filter((age) => arrivedAt + age <= now).length)
