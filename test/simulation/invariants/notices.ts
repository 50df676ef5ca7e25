/** What senders are told: S7–S11. */
import type { Notify } from '../../../src/mail/envelope.ts'
import { type Debt, type RecipientId } from '../../../src/queue/message.ts'
import { isLive, type ModelMessage, type ModelRecipient } from '../model.ts'
import type { CommitOf, NoticeEntry } from '../record.ts'
import type { Complain, Invariant, Scene } from '../witness.ts'
import { nameOf } from './accounts.ts'

const wants = (notify: Notify | undefined, what: Debt): boolean =>
  notify === undefined ? what !== 'success' : notify !== 'never' && notify.includes(what)

const ACTION: Readonly<Record<Debt, readonly string[]>> = {
  failure: ['failed'],
  delay: ['delayed'],
  success: ['relayed', 'delivered', 'expanded'],
}

const isOfPostmaster = (address: string): boolean => address.startsWith('double-bounce@')

/** Each failure is told once, to whom it concerns, of whom it concerns, in the words of the far side. */
export function noticesAreRight(complain: Complain): Invariant {
  const told = new Map<string, number>()
  const seeReport = (report: CommitOf<'report'>, scene: Scene): void => {
    const held = scene.queue.messages.get(report.message)
    if (held === undefined) return complain(`a notice about message ${report.message}, which is not there`)
    if (held.message.sender !== '' && isOfPostmaster(held.message.sender) && report.notices.length > 0)
      complain(`a notice about mail to the postmaster`)
    for (const { recipient, debt } of report.paid) {
      const one = scene.queue.recipient(recipient)
      if (one === undefined || !mayBeTold(one, debt)) complain(`${recipient} is told of as ${debt}, and is ${one?.state ?? 'unknown'}`)
      const key = `${recipient} ${debt}`
      told.set(key, (told.get(key) ?? 0) + 1)
      if (debt !== 'delay' && (told.get(key) ?? 0) > 1) complain(`${recipient}: the ${debt} is told twice`)
    }
    for (const notice of report.notices) judgeNotice(notice, held, report, scene, complain)
  }
  return {
    see({ where, event }, scene) {
      if (where === 'test' && event.did === 'committed' && event.method === 'report' && event.entered) seeReport(event, scene)
    },
    end({ queue }) {
      for (const held of queue.messages.values()) {
        if (held.message.sender === '' || isOfPostmaster(held.message.sender)) continue
        for (const one of held.recipients) {
          const failed = one.state === 'bounced' || one.state === 'expired'
          if (failed && wants(one.notify, 'failure') && !told.has(`${one.id} failure`))
            complain(`${nameOf(one)} is ${one.state}, and its sender never heard of it`)
        }
      }
    },
  }
}

/** A warning may quote the attempt before the last, when that ended while the warning was being written. */
const isJustTried = ({ since }: ModelRecipient, { at, scenario }: Scene): boolean =>
  at - since <= 4 * scenario.commitTakes && scenario.commitTakes > 0

function mayBeTold(one: ModelRecipient, debt: Debt): boolean {
  if (debt === 'delay') return isLive(one)
  return debt === 'success' ? one.state === 'delivered' : one.state === 'bounced' || one.state === 'expired'
}

function judgeNotice(notice: NoticeEntry, held: ModelMessage, { paid }: CommitOf<'report'>, scene: Scene, complain: Complain): void {
  const [to] = notice.recipients
  const name = `the notice to ${to?.address ?? 'nobody'} about message ${held.message.id}`
  if (notice.recipients.length !== 1 || to === undefined) return complain(`${name} has ${notice.recipients.length} recipients`)
  if (notice.says === null || notice.says.length === 0) return complain(`${name} cannot be read by a program`)
  const toSender = notice.message.sender === ''
  if (toSender && held.message.sender === '') complain(`${name}: nobody is told about mail from <>`)
  if (toSender && to.address !== held.message.sender) complain(`${name} should go to ${held.message.sender}`)
  if (!toSender && !isOfPostmaster(notice.message.sender)) complain(`${name} comes from ${notice.message.sender}`)
  if (!toSender && !to.address.startsWith('postmaster@')) complain(`${name} should go to the postmaster`)
  const action = notice.says[0]?.action ?? ''
  const kind = (['failure', 'delay', 'success'] as const).find((debt) => ACTION[debt].includes(action))
  if (kind === undefined) return complain(`${name} says ${action}`)
  const concerned = paid.flatMap(({ recipient, debt }) => {
    const one = debt === kind ? scene.queue.recipient(recipient) : undefined
    return one === undefined || (toSender && kind !== 'success' && !wants(one.notify, kind)) ? [] : [one]
  })
  // A warning also names who is late with those that brought it up.
  if (kind === 'delay') concerned.push(...held.recipients.filter((one) => isNamedToo(one, notice, toSender) && !concerned.includes(one)))
  const [listed, expected] = [notice.says.map(({ recipient }) => recipient), concerned.map(({ address }) => address)].map((all) =>
    all.toSorted().join(' '),
  )
  if (listed !== expected) complain(`${name} tells of ${listed}, and should tell of ${expected}`)
  for (const { recipient, status, diagnostic } of notice.says) {
    const one = concerned.find(({ address }) => address === recipient)
    if (
      !/^[245]\.\d+\.\d+$/.test(status) ||
      (kind === 'delay' && !status.startsWith('4')) ||
      (kind === 'success' && !status.startsWith('2'))
    )
      complain(`${name} says ${action} ${status} of ${recipient}`)
    if (
      one?.reply !== undefined &&
      kind !== 'success' &&
      !(kind === 'delay' && isJustTried(one, scene)) &&
      diagnostic !== undefined &&
      !squeezed(diagnostic).includes(squeezed(one.reply))
    )
      complain(`${name} quotes "${diagnostic}" instead of "${one.reply}"`)
  }
}

const isNamedToo = (one: ModelRecipient, { says }: NoticeEntry, toSender: boolean): boolean =>
  isLive(one) && (!toSender || wants(one.notify, 'delay')) && says?.some(({ recipient }) => recipient === one.address) === true

const squeezed = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()

/** How long a warning may take: a round lasts a minute at most, and mail that was just being tried is looked at again after another. */
const PATIENCE = 3 * 60_000

/** At most one warning for each time, never before it; and one that is due comes, by a failed attempt or for mail that waits behind a closed door. */
export function warningsComeInTime(complain: Complain): Invariant {
  /** When a message was warned of, counted from its arrival. */
  const warned = new Map<number, number[]>()
  /** Recipients whose sender must hear of the delay, since when on the stopwatch. */
  const owed = new Map<RecipientId, number>()
  const seeReport = (report: CommitOf<'report'>, { queue, now, settings, scenario }: Scene): void => {
    if (report.notices.length === 0 || report.late.length === 0) return
    const held = queue.messages.get(report.message)
    if (held === undefined) return
    const before = warned.get(report.message) ?? []
    const due = settings.warningAges[before.length === 0 ? held.warnings : Math.max(before.length, held.warnings)]
    const age = now - held.message.arrivedAt
    const slack = scenario.steps.some((step) => step.do === 'set the clock') ? Infinity : 0
    if (due === undefined) complain(`message ${report.message} is warned of once too often`)
    else if (age < due - slack) complain(`message ${report.message} is warned of ${due - age} ms too early`)
    warned.set(report.message, [...before, age])
    for (const one of held.recipients) owed.delete(one.id)
  }
  return {
    see({ where, event }, scene) {
      if (where !== 'test' || event.did !== 'committed') return
      if (event.method === 'report' && event.entered) seeReport(event, scene)
      complainOfForgotten(scene)
      if (event.method !== 'settle') return
      for (const settled of event.settlement.recipients) {
        owed.delete(settled.recipient)
        const one = scene.queue.recipient(settled.recipient)
        const held = scene.queue.messages.get(event.settlement.message)
        if (settled.state !== 'waiting' || one?.state !== 'leased' || held === undefined || !isPatient(held, one)) continue
        const due = scene.settings.warningAges[held.warnings]
        if (due !== undefined && scene.now >= held.message.arrivedAt + due) owed.set(settled.recipient, scene.at)
      }
    },
    end: complainOfForgotten,
  }
  function complainOfForgotten({ queue, at, upSince, diskFullUntil }: Scene): void {
    if (upSince === null || at - Math.max(upSince, diskFullUntil) < PATIENCE) return
    for (const [id, since] of owed) {
      const one = queue.recipient(id)
      const held = queue.messages.get(Math.floor(id / 131_072))
      if (one === undefined || !isLive(one) || held?.placement !== 'queued' || at - since < PATIENCE) continue
      owed.delete(id)
      complain(`${nameOf(one)} was tried in vain after the warning time, and its sender was not warned`)
    }
  }
}

const isPatient = ({ message, placement }: ModelMessage, { notify }: ModelRecipient): boolean =>
  placement === 'queued' && message.sender !== '' && !isOfPostmaster(message.sender) && wants(notify, 'delay')
