/** Notices to senders. */
import type { Notify } from '../../../src/mail/envelope.ts'
import { isLive, messageOf, type NoticeDue, type RecipientId } from '../../../src/mail/message.ts'
import { type ModelMessage, type ModelRecipient } from '../model.ts'
import type { CommitOf, NoticeEntry } from '../record.ts'
import type { Complain, Invariant, Scene } from '../replay.ts'
import { nameOf } from './accounts.ts'

const wants = (notify: Notify | undefined, what: NoticeDue): boolean =>
  notify === undefined ? what !== 'success' : notify !== 'never' && notify.includes(what)

const ACTION: Readonly<Record<NoticeDue, readonly string[]>> = {
  failure: ['failed'],
  delay: ['delayed'],
  success: ['relayed', 'delivered', 'expanded'],
}

const isOfPostmaster = (address: string): boolean => address.startsWith('double-bounce@')

/** Each failure is reported once, to its sender, for its recipient, with the reply of the remote server. */
export function noticesAreRight(complain: Complain): Invariant {
  const told = new Map<string, number>()
  const seeReport = (report: CommitOf<'report'>, scene: Scene): void => {
    const held = scene.queue.messages.get(report.message)
    if (held === undefined) return complain(`a notice about message ${report.message}, which is not there`)
    if (held.message.sender !== '' && isOfPostmaster(held.message.sender) && report.notices.length > 0)
      complain(`a notice about mail to the postmaster`)
    for (const { recipient, noticeDue } of report.noticesSettled) {
      const one = scene.queue.recipient(recipient)
      if (one === undefined || !mayBeTold(one, noticeDue))
        complain(`${recipient} is told of as ${noticeDue}, and is ${one?.state ?? 'unknown'}`)
      const key = `${recipient} ${noticeDue}`
      told.set(key, (told.get(key) ?? 0) + 1)
      if (noticeDue !== 'delay' && (told.get(key) ?? 0) > 1) complain(`${recipient}: the ${noticeDue} is told twice`)
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

/** A warning may quote the attempt before the last one, when the last one ended while the warning was composed. */
const isJustTried = ({ since }: ModelRecipient, { at, scenario }: Scene): boolean =>
  at - since <= 4 * scenario.commitTakes && scenario.commitTakes > 0

function mayBeTold(one: ModelRecipient, noticeDue: NoticeDue): boolean {
  if (noticeDue === 'delay') return isLive(one)
  return noticeDue === 'success' ? one.state === 'delivered' : one.state === 'bounced' || one.state === 'expired'
}

function judgeNotice(
  notice: NoticeEntry,
  held: ModelMessage,
  { noticesSettled }: CommitOf<'report'>,
  scene: Scene,
  complain: Complain,
): void {
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
  const kind = (['failure', 'delay', 'success'] as const).find((noticeDue) => ACTION[noticeDue].includes(action))
  if (kind === undefined) return complain(`${name} says ${action}`)
  const concerned = noticesSettled.flatMap(({ recipient, noticeDue }) => {
    const one = noticeDue === kind ? scene.queue.recipient(recipient) : undefined
    return one === undefined || (toSender && kind !== 'success' && !wants(one.notify, kind)) ? [] : [one]
  })
  // A warning also lists other late recipients of the message.
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

/** Maximum delay of a warning: a round lasts at most a minute, and mail in delivery is checked again after another minute. */
const PATIENCE = 3 * 60_000

/** At most one warning for each warning time and never before it; a due warning is sent, after a failed attempt or for mail at a closed destination. */
export function warningsComeInTime(complain: Complain): Invariant {
  /** Times of a message's warnings, counted from its arrival. */
  const warned = new Map<number, number[]>()
  /** Recipients whose sender must receive a delay warning, with the time since when on the monotonic clock. */
  const owed = new Map<RecipientId, number>()
  const seeReport = (report: CommitOf<'report'>, { queue, now, settings }: Scene): void => {
    if (report.notices.length === 0 || report.late.length === 0) return
    const held = queue.messages.get(report.message)
    if (held === undefined) return
    const before = warned.get(report.message) ?? []
    const due = settings.warningAges[before.length === 0 ? held.warnings : Math.max(before.length, held.warnings)]
    const age = now - held.message.arrivedAt
    if (due === undefined) complain(`message ${report.message} is warned of once too often`)
    else if (age < due) complain(`message ${report.message} is warned of ${due - age} ms too early`)
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
      const held = queue.messages.get(messageOf(id))
      if (one === undefined || !isLive(one) || held?.placement !== 'queued' || at - since < PATIENCE) continue
      owed.delete(id)
      complain(`${nameOf(one)} was tried in vain after the warning time, and its sender was not warned`)
    }
  }
}

const isPatient = ({ message, placement }: ModelMessage, { notify }: ModelRecipient): boolean =>
  placement === 'queued' && message.sender !== '' && !isOfPostmaster(message.sender) && wants(notify, 'delay')
