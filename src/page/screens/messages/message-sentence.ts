/** The answer of the screen of a message in one or two sentences: why is it here, or what became of it? Pure. */
import { causeOf, shownCause } from '../../../mail/failure-cause.ts'
import { requeuedAs } from '../../../mail/requeued.ts'
import { deathText, resumedText } from '../../../presentation/destination-state.ts'
import { endWords } from '../../../presentation/expiry-words.ts'
import { clippedWords, ended, grouped } from '../../../presentation/text.ts'
import type { MessageStoryJson } from '../../../resources/message-story-json.ts'
import { clockText, type ZonedNow } from '../../markup/times.ts'
import { shownReply } from '../../markup/reply.ts'
import { causeWords } from '../cause-words.ts'

type Recipient = Pick<
  MessageStoryJson['recipients'][number],
  | 'address'
  | 'destination'
  | 'state'
  | 'attempts'
  | 'waits_for'
  | 'next_attempt_time'
  | 'settle_time'
  | 'last_reply'
  | 'site_stage'
  | 'suspended_with'
  | 'also_suspended_with'
  | 'resent_as'
  | 'resume_time'
>
type Attempt = Pick<MessageStoryJson['history'][number], 'time' | 'recipient' | 'reply' | 'reason'>

export interface MessageState extends Pick<
  MessageStoryJson,
  'sender' | 'waits_for' | 'forced_expire' | 'not_before' | 'restore_until' | 'rule'
> {
  readonly recipients: readonly Recipient[]
  readonly history: readonly Attempt[]
  readonly future: readonly Pick<MessageStoryJson['future'][number], 'recipient' | 'expire_time'>[]
}

/** In characters, of a reply. */
const REPLY_LENGTH = 90

const replyText = (whole: string | null): string => {
  if (whole === null) return ''
  const { codes, text } = shownReply(whole)
  const said = clippedWords(`${codes} ${text}`.trim(), REPLY_LENGTH)
  return said === '' ? '' : `: ${said}`
}

const OUTCOMES = [
  ['delivered', 'have it', 'has it'],
  ['bounced', 'were refused', 'was refused'],
  ['expired', 'were given up', 'was given up'],
  ['removed', 'were removed', 'was removed'],
  ['requeued', 'were requeued', 'was requeued'],
] as const

/** The final state of a recipient, or `requeued` for one that goes on in another message. */
const outcomeOf = ({ state, last_reply: last }: Recipient): string =>
  state === 'removed' && requeuedAs(last) !== undefined ? 'requeued' : state

/** Recipients in final states by their number: `32 have it, 1 was refused`. */
const outcomesText = (recipients: readonly Recipient[]): string =>
  OUTCOMES.flatMap(([outcome, several, one]) => {
    const number = recipients.filter((recipient) => outcomeOf(recipient) === outcome).length
    return number === 0 ? [] : [`${grouped(number)} ${number === 1 ? one : several}`]
  }).join(', ')

function singleOutcome({ destination, state, settle_time: settled, last_reply: reply }: Recipient, at: ZonedNow): string {
  const when = settled === null ? '' : ` at ${clockText(at, settled)}`
  switch (state) {
    case 'delivered':
      return ended(`${destination} took it${when}${replyText(reply)}`)
    case 'bounced':
      return ended(`It was refused for good${when}${replyText(reply)}`)
    case 'expired':
      return ended(`It was given up${when} without a delivery${replyText(reply)}`)
    case 'removed': {
      const id = requeuedAs(reply)
      return id === undefined ? `It was removed${when}.` : `It was requeued${when}, as ${id}.`
    }
    case 'waiting':
    case 'leased':
    case 'parked':
    case 'scheduled':
      return ''
  }
}

/** ` 2 of them were sent again, as 4jdcQW68d4zMC.`; empty without one. */
function resentText(recipients: readonly Recipient[]): string {
  const ids = recipients.flatMap(({ resent_as: id }) => id ?? [])
  const [id = '', ...others] = new Set(ids)
  if (ids.length === 0) return ''
  const subject = recipients.length === 1 ? 'It was' : ids.length === 1 ? '1 of them was' : `${grouped(ids.length)} of them were`
  return ` ${subject} sent again${others.length === 0 ? `, as ${id}` : ''}.`
}

const finished = (recipients: readonly Recipient[], at: ZonedNow): string => `${endText(recipients, at)}${resentText(recipients)}`

function endText(recipients: readonly Recipient[], at: ZonedNow): string {
  const [only, ...others] = recipients
  if (only === undefined) return 'It has no recipients.'
  if (others.length === 0) return singleOutcome(only, at)
  const same = others.every((one) => outcomeOf(one) === outcomeOf(only))
    ? OUTCOMES.find(([outcome]) => outcome === outcomeOf(only))
    : undefined
  if (same !== undefined) return `All ${grouped(recipients.length)} recipients ${same[1]}.`
  return `Of ${grouped(recipients.length)} recipients, ${outcomesText(recipients)}.`
}

/** Time of the first of the last attempts, among those of one recipient, that failed for the same cause; undefined without an attempt. */
function failsSince(own: readonly Attempt[]): number | undefined {
  const causes = own.map(({ reply, reason }) => causeOf({ reply: reply ?? undefined, reason }))
  const other = causes.findLastIndex((cause) => cause !== causes.at(-1))
  return own[other + 1]?.time
}

/** Why the recipient waits, as the beginning of a sentence. */
function causeText(one: Recipient, { history }: MessageState, at: ZonedNow): string {
  const since = failsSince(history.filter(({ recipient }) => recipient === one.address))
  if (one.attempts === 0 || one.last_reply === null) return 'It was not tried yet.'
  return ended(`${one.destination} defers it${since === undefined ? '' : ` since ${clockText(at, since)}`}${replyText(one.last_reply)}`)
}

/** In ms; mail that is due for longer waits for its turn among others. */
const SOON = 60_000

function attemptText(next: number, at: ZonedNow): string {
  const late = at.now - next * 1_000
  if (late < 0) return `The next attempt is at ${clockText(at, next)}`
  return late < SOON ? 'The next attempt is due now' : `It is due since ${clockText(at, next)}, and waits for its turn`
}

const probeText = (next: number | null, at: ZonedNow): string =>
  next === null ? 'none is planned' : next * 1_000 <= at.now ? 'the next one is due now' : `the next one is at ${clockText(at, next)}`

/** The end of a deleted message. It has none of these while a delivery of it runs, after which it is removed. */
function restoredText(until: number | null, at: ZonedNow): string {
  if (until === null) return 'It is deleted, and cannot be restored.'
  if (until * 1_000 <= at.now) return 'It is in the trash, and is removed soon; it can be restored until then.'
  return `It is in the trash, and can be restored until ${clockText(at, until)}.`
}

/** The end of the suspension of its destination, `itself` in the text. */
const resumption = ({ suspended_with: provider, also_suspended_with: also }: Recipient, itself: string): string =>
  resumedText({ itself, with: provider, alsoWith: also })

const resumedAt = (one: Recipient, itself: string, at: ZonedNow): string =>
  `${resumption(one, itself)}${one.resume_time === null ? '' : ` at ${clockText(at, one.resume_time)}`}`

/** Text of the end of mail that an operator has made to expire; null for other mail, and where the operator must act first or a delivery runs. */
function expiringText(one: Recipient, { waits_for: waitsFor, forced_expire: isForced, sender }: MessageState, at: ZonedNow): string | null {
  if (!isForced) return null
  const ends = endWords(sender)
  const made = `An operator has made it expire: it is ${ends}`
  const next = one.next_attempt_time
  switch (waitsFor) {
    case 'release':
      return `It is on hold until it is released. ${made} then.`
    case 'resume':
      return `${one.destination} is suspended. ${made} when ${resumedAt(one, 'that', at)}, or at the end of its lifetime.`
    case 'probe':
      return `${one.destination} is dead. ${made} in place of a probe.`
    case 'due-time':
    case 'schedule':
      if (next === null) return `${made}.`
      return `${made} in place of its next attempt${next * 1_000 <= at.now ? ', which is due now' : ` at ${clockText(at, next)}`}.`
    case 'inspection':
    case 'restore':
    case 'slot':
    case 'delivery':
    case 'nothing':
      return null
  }
}

/** Text of the next event for a recipient that waits. */
function nextText(one: Recipient, message: MessageState, at: ZonedNow): string {
  const { waits_for: waitsFor, not_before: notBefore, restore_until: until, rule, recipients, future, sender } = message
  const expiring = expiringText(one, message, at)
  if (expiring !== null) return expiring
  switch (waitsFor) {
    case 'release':
      return 'It is on hold until it is released.'
    case 'inspection':
      return 'It is unreadable, and stays until it is deleted.'
    case 'restore':
      return restoredText(until, at)
    case 'resume':
      return `${one.destination} is suspended: nothing is tried until ${resumedAt(one, 'it', at)}.`
    case 'slot':
      return 'It is due, and waits for a delivery slot.'
    case 'delivery':
      return 'It is in delivery now.'
    case 'schedule':
      return ended(
        `It is not delivered before ${notBefore === undefined ? 'a later time' : clockText(at, notBefore)}${rule === null ? '' : ` (${rule})`}`,
      )
    case 'nothing':
      return ''
    case 'probe':
    case 'due-time':
      break
  }
  const next = one.next_attempt_time
  const end = recipients.length === 1 ? future[0]?.expire_time : undefined
  const givenUp = end === undefined ? '' : `; without a delivery it is ${endWords(sender)} at ${clockText(at, end)}`
  if (waitsFor === 'probe')
    return `${one.destination} is dead: ${deathText(one.site_stage)}. Each probe tries one of the recipients that wait for it; ${probeText(next, at)}${givenUp}.`
  return `${next === null ? 'No attempt is planned' : attemptText(next, at)}${givenUp}.`
}

const isLive = ({ state }: Recipient): boolean => !['delivered', 'bounced', 'expired', 'removed'].includes(state)

function causeOfReply(whole: string): string {
  const { codes, text } = shownReply(whole)
  const reply = `${codes} ${text}`.trim()
  return causeOf({ reply, reason: reply })
}

/** The last reply with the most recipients that wait. */
function mostFrequent(recipients: readonly Recipient[]): readonly Recipient[] {
  const groups = Map.groupBy(recipients, ({ last_reply: reply }) => (reply === null ? '' : causeOfReply(reply)))
  return [...groups.values()].toSorted((a, b) => b.length - a.length)[0] ?? []
}

/** The last reply of recipients with the same cause; with `…` in place of what differs from one to the other. */
function sharedReply([first, ...others]: readonly Recipient[]): string | null {
  const reply = first?.last_reply ?? null
  return reply === null || others.every(({ last_reply: other }) => other === reply) ? reply : causeWords(shownCause(causeOfReply(reply)))
}

function theyWait(number: number, all: number): string {
  if (number === all) return all === 1 ? 'It waits' : 'All of them wait'
  return `${grouped(number)} of them ${number === 1 ? 'waits' : 'wait'}`
}

/** Recipients of a group that wait, among all: `all of them`, or `2 that wait` beside settled ones. */
function whomOf(number: number, { waiting, all }: { readonly waiting: number; readonly all: number }): string {
  if (waiting === 1) return 'it'
  return `${number === waiting ? 'all' : grouped(number)} ${waiting === all ? 'of them' : 'that wait'}`
}

/** The most frequent reply to the recipients that wait, without those behind a closed destination where others have attempts. They wait for it only where nothing else holds up the next attempt. */
function causeOfSeveral(waiting: readonly Recipient[], { waits_for: waitsFor, recipients, history }: MessageState, at: ZonedNow): string {
  const isHeldUp = waitsFor === 'release' || waitsFor === 'resume' || waitsFor === 'probe'
  const main = mostFrequent(isHeldUp ? waiting : waiting.filter((one) => !isBehindClosed(one)))
  const why = replyText(sharedReply(main))
  if (why === '' || waitsFor === 'schedule' || waitsFor === 'inspection') return ''
  if (!isHeldUp) return ended(`${theyWait(main.length, waiting.length)} for${why.slice(1)}`)
  const names = new Set(main.map(({ destination }) => destination))
  const [name = ''] = names
  // The time since which it is true of all.
  const attempts = Map.groupBy(history, ({ recipient }) => recipient)
  const since = main.reduce((latest, { address }) => Math.max(latest, failsSince(attempts.get(address) ?? []) ?? Infinity), 0)
  const who = names.size === 1 ? `${name} defers` : `${grouped(names.size)} destinations defer`
  const whom = whomOf(main.length, { waiting: waiting.length, all: recipients.length })
  return ended(`${who} ${whom}${since === Infinity ? '' : ` since ${clockText(at, since)}`}${why}`)
}

/** Closed destinations that are named. */
const MOST_NAMED = 3

const isBehindClosed = ({ waits_for: waits }: Recipient): boolean => waits === 'resume' || waits === 'probe'

/** `until a.example is resumed`, or `for a probe of a.example`. */
const awaited = (one: Recipient): string =>
  one.waits_for === 'resume' ? `until ${resumption(one, one.destination)}` : `for a probe of ${one.destination}`

const earliestOf = (recipients: readonly [Recipient, ...Recipient[]]): Recipient =>
  recipients.reduce((best, one) => ((one.next_attempt_time ?? Infinity) < (best.next_attempt_time ?? Infinity) ? one : best))

/** The next event for recipients of which some wait for a closed destination: `15 wait until a.example is resumed, 3 for a probe of b.example.` */
function nextOfSeveral(waiting: readonly [Recipient, ...Recipient[]], message: MessageState, at: ZonedNow): string {
  const groups = [...Map.groupBy(waiting.filter(isBehindClosed), awaited)].toSorted(([, a], [, b]) => b.length - a.length)
  const [firstOpen, ...others] = waiting.filter((one) => !isBehindClosed(one))
  if (groups.length === 0 || (groups.length === 1 && firstOpen === undefined)) return nextText(earliestOf(waiting), message, at)
  const further = groups.slice(MOST_NAMED).reduce((sum, [, those]) => sum + those.length, 0)
  const parts = groups.slice(0, MOST_NAMED).map(([what, { length }], n) => {
    const verb = n > 0 ? '' : length === 1 ? ' waits' : ' wait'
    return `${grouped(length)}${verb} ${what}`
  })
  const closed = `${[...parts, ...(further === 0 ? [] : [`${grouped(further)} for other destinations`])].join(', ')}.`
  if (firstOpen === undefined)
    return message.forced_expire ? `${closed} An operator has made it expire: it is ${endWords(message.sender)} then.` : closed
  const open = earliestOf([firstOpen, ...others])
  return `${closed} ${nextText(open, { ...message, waits_for: open.waits_for }, at)}`
}

export function messageSentence(message: MessageState, at: ZonedNow): string {
  const waiting = message.recipients.filter(isLive)
  const [first, ...others] = waiting
  if (first === undefined) return finished(message.recipients, at)
  const next = nextOfSeveral([first, ...others], message, at)
  if (message.recipients.length === 1)
    return ['schedule', 'inspection', 'delivery', 'restore'].includes(message.waits_for) ||
      (message.waits_for !== 'due-time' && first.attempts === 0)
      ? next
      : `${causeText(first, message, at)} ${next}`
  const settled = message.recipients.filter((one) => !isLive(one))
  if (message.waits_for === 'restore')
    return settled.length === 0 ? next : `Of ${grouped(message.recipients.length)} recipients, ${outcomesText(settled)}. ${next}`
  const rest = settled.length === 0 ? '' : `, ${outcomesText(settled)}`
  const cause = causeOfSeveral(waiting, message, at)
  const who =
    settled.length === 0 ? `All ${grouped(waiting.length)}` : `${grouped(waiting.length)} of ${grouped(message.recipients.length)}`
  return `${who} recipients ${waiting.length === 1 ? 'waits' : 'wait'}${rest}.${cause === '' ? '' : ` ${cause}`} ${next}`.trim()
}
