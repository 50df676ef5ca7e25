/** Accepted mail is kept, each recipient has one final state, and the state matches the reply of the remote server. */
import { isLive, queueIdOf, type RecipientId } from '../../../src/mail/message.ts'
import type { ListedMessage } from '../../../src/store/queue-reader.ts'
import type { Settled } from '../../../src/store/recorded-outcomes.ts'
import { type ModelMessage, type ModelRecipient } from '../model.ts'
import type { OutcomeFacts, ResultFacts } from '../record.ts'
import { recipientsOf } from '../rewriting.ts'
import type { Scenario } from '../scenario.ts'
import type { Complain, Invariant, Scene, UnderWay } from '../replay.ts'

/** A message is answered 250 only when it is committed with all its recipients: those that its rules give it, and no others. */
export const acknowledgedIsOnDisk = (complain: Complain, { steps, rewriting }: Scenario): Invariant => ({
  see({ where, event }, { queue }) {
    if (where !== 'test' || event.did !== 'answered') return
    const to = steps.flatMap((step) => (step.do === 'mail' && step.mail.number === event.mail ? recipientsOf(step.mail, rewriting) : []))
    const queueId = /^250 .*queued as (\S+)/.exec(event.reply ?? '')?.[1]
    if (queueId === undefined) return
    const held = [...queue.messages.values()].find(({ message }) => queueIdOf(message) === queueId)
    if (held === undefined) complain(`${queueId} was acknowledged, and is not on disk`)
    else if (
      held.recipients
        .map(({ address }) => address)
        .toSorted()
        .join() !== to.join()
    )
      complain(`${queueId} was acknowledged, and is not on disk with exactly those who should have it`)
  },
})

/** No recipient is lost, none returns after its final state, and each has the state that the commits define. */
export const queueIsAsCommitted = (complain: Complain): Invariant => ({
  see({ where, event }, { queue }) {
    if (where !== 'test' || event.did !== 'looked') return
    const seen = new Map<RecipientId, ListedMessage['recipients'][number]>()
    for (const listed of event.messages) {
      for (const one of listed.recipients) seen.set(one.id, one)
      const held = queue.messages.get(listed.message.id)
      const place = held?.placement === 'queued' ? undefined : held?.placement
      const shown = ['hold', 'corrupt', 'trash'].includes(listed.queue) ? listed.queue : undefined
      if (place !== shown)
        complain(`message ${listed.message.id} is shown in ${listed.queue}, and was put into ${held?.placement ?? 'nothing'}`)
    }
    for (const [one] of queue.live()) {
      const found = seen.get(one.id)
      seen.delete(one.id)
      if (found === undefined) complain(`${nameOf(one)} is lost: it should be ${one.state}`)
      else compare(one, found, complain)
    }
    for (const one of seen.values()) complain(`${one.address} (${one.id}) is ${one.state}, and should not be there any more`)
  },
})

const FIELDS = ['state', 'dueAt', 'expiresAt', 'steps', 'attempts', 'destination'] as const

function compare(expected: ModelRecipient, found: ListedMessage['recipients'][number], complain: Complain): void {
  for (const field of FIELDS) {
    if (found[field] !== expected[field]) complain(`${nameOf(expected)}: ${field} is ${found[field]}, and should be ${expected[field]}`)
  }
}

/** Only waiting and due recipients are claimed; none is in delivery twice; mail that an operator expired is not attempted. */
export const takenUpRightly = (complain: Complain): Invariant => ({
  see({ where, event }, { queue, underWay }) {
    if (where !== 'test') return
    if (event.did === 'committed' && 'requests' in event) {
      for (const { id } of event.requests.flatMap(({ recipients }) => recipients)) {
        const one = queue.recipient(id)
        if (one === undefined || one.state !== 'waiting') complain(`${id} was taken up, and is ${one?.state ?? 'unknown'}`)
        else if (event.method === 'claimExpired' ? one.expiresAt > event.asked : one.dueAt > event.asked)
          complain(`${nameOf(one)} was taken up ${one.dueAt - event.asked} ms before it was due`)
      }
    }
    if (event.did !== 'began') return
    if (event.forcedExpire) complain(`message ${event.message} was tried after an operator had given it up`)
    for (const { id } of event.recipients) {
      const one = queue.recipient(id)
      if (one?.state !== 'leased') complain(`${id} is tried, and is ${one?.state ?? 'unknown'}`)
      for (const other of underWay.values()) if (other.recipients.some((there) => there.id === id)) complain(`${id} is in delivery twice`)
    }
  },
})

/** A copy that a remote server accepted. */
interface Copy {
  readonly attempt: UnderWay
  readonly address: string
  readonly acknowledged: boolean
}

/** Outcomes match the replies of the remote server, and an accepted copy is not sent again without a reason. */
export function outcomesAreTrue(complain: Complain): Invariant {
  const results = new Map<number, ResultFacts>()
  let copies: Copy[] = []
  const checkSettled = (settled: Settled, attempt: UnderWay, scene: Scene): void => {
    const one = scene.queue.recipient(settled.recipient)
    const result = results.get(attempt.attempt)
    const outcome = result?.outcomes.find(({ recipient }) => recipient === settled.recipient)
    if (one === undefined || result === undefined || outcome === undefined)
      return complain(`${settled.recipient} was settled before its delivery ended`)
    const has = copies.some((copy) => copy.attempt.attempt === attempt.attempt && copy.address === one.address && copy.acknowledged)
    if (has && settled.state !== 'delivered' && result.possiblySent !== true)
      complain(`${nameOf(one)} was taken by the far side, and is ${settled.state}`)
    if (settled.state === 'delivered' && !has) complain(`${nameOf(one)} counts as delivered, and nobody has taken it`)
    const wrong = misjudged(outcome, settled.state, result.endedAt >= one.expiresAt)
    if (wrong !== undefined)
      complain(`${nameOf(one)}: ${outcome.reply ?? outcome.status} at ${outcome.stage} ended as ${settled.state}: ${wrong}`)
  }
  return {
    see({ where, event }, scene) {
      if (where === 'remote' && event.event === 'message' && event.kept) {
        for (const address of event.recipients) {
          const attempt = attemptFor(scene, event.message_id, address)
          if (attempt === undefined && event.reply_code === null) continue // its sender gave up waiting for the reply
          if (attempt === undefined) complain(`${address} received ${event.message_id}, and nobody was sending it`)
          else copies.push({ attempt, address, acknowledged: event.reply_code !== null && event.reply_code < 300 })
        }
      }
      if (where !== 'test') return
      if (event.did === 'ended') results.set(event.attempt, event.result)
      if (event.did !== 'committed' || event.method !== 'settle') return
      for (const settled of event.settlement.recipients) {
        const attempt = [...scene.underWay.values()].find(({ recipients }) => recipients.some(({ id }) => id === settled.recipient))
        if (scene.queue.recipient(settled.recipient)?.state !== 'leased') continue
        if (attempt === undefined) mayExpireUntried(settled, scene, complain)
        else checkSettled(settled, attempt, scene)
      }
      copies = copies.filter(({ attempt }) => scene.underWay.has(attempt.attempt))
    },
  }
}

function attemptFor({ underWay, overtaken, queue }: Scene, messageId: string | undefined, address: string): UnderWay | undefined {
  return [...underWay.values(), ...overtaken.values()].find(({ message, recipients }) => {
    const held = queue.messages.get(message)
    return held?.message.messageId === messageId && recipients.some(({ id }) => queue.recipient(id)?.address === address)
  })
}

function misjudged({ outcome, reply, stage, softBounce }: OutcomeFacts, state: Settled['state'], isOver: boolean): string | undefined {
  const said = ['mail', 'rcpt', 'data', 'end-of-data'].includes(stage) ? reply?.charAt(0) : undefined
  if (said === '5' && outcome !== 'bounced' && softBounce !== true) return 'a 5xx is final'
  if (said === '4' && outcome !== 'deferred') return 'a 4xx is not final'
  if (outcome === 'delivered') return state === 'delivered' ? undefined : 'it was delivered'
  if (outcome === 'bounced') return state === 'bounced' ? undefined : 'it was refused for good'
  if (isOver) return state === 'expired' ? undefined : 'its lifetime was over'
  return state === 'waiting' ? undefined : 'its lifetime was not over'
}

/** Expiry without a last attempt is allowed only for a forced expiry, a closed destination, or mail that waited too long for a slot. */
function mayExpireUntried({ recipient, state }: Settled, { queue, closed, now, settings }: Scene, complain: Complain): void {
  const one = queue.recipient(recipient)
  const held = [...queue.messages.values()].find(({ recipients }) => recipients.some(({ id }) => id === recipient))
  if (one === undefined || held === undefined) return
  if (state !== 'expired') return complain(`${nameOf(one)} became ${state} without an attempt`)
  if (held.forcedExpire) return
  const late = now - one.expiresAt
  if (late < 0) complain(`${nameOf(one)} expired ${-late} ms before its time`)
  const patience = settings.duration(one.destination, 'minimal_backoff_time', '300s')
  if (!closed.has(one.destination) && late < patience) complain(`${nameOf(one)} expired without its last attempt`)
}

/** Delivered content equals the submitted content, byte for byte, after the Received field. */
export function contentIsIntact(complain: Complain): Invariant {
  const handedIn = new Map<string, string>()
  return {
    see({ where, event }) {
      if (where !== 'test') return
      if (event.did === 'handed in') handedIn.set(event.messageId, event.digest)
      if (event.did !== 'mailboxes') return
      for (const { address, messageId, digest } of event.mails) {
        const original = handedIn.get(messageId)
        if (original !== undefined && original !== digest) complain(`${messageId} reached ${address} changed`)
      }
    },
  }
}

/** Each accepted recipient that no operator removed has the mail in the mailbox, or has failed. */
export function deliveredHasArrived(complain: Complain): Invariant {
  const arrived = new Set<string>()
  return {
    see({ where, event }) {
      if (where === 'test' && event.did === 'mailboxes')
        for (const { address, messageId } of event.mails) arrived.add(`${address} ${messageId}`)
    },
    end({ queue }) {
      for (const held of queue.messages.values()) {
        for (const one of held.recipients) {
          if (isLive(one) && held.placement !== 'trash') complain(`${nameOf(one)} is still ${one.state} in the end`)
          if (one.noticeDue !== undefined && held.placement !== 'trash')
            complain(`${nameOf(one)}: a ${one.noticeDue} notice is still owed in the end`)
          if (one.state === 'delivered' && !arrived.has(`${one.address} ${messageIdOf(held)}`))
            complain(`${nameOf(one)} was delivered, and did not arrive`)
        }
      }
    },
  }
}

const messageIdOf = ({ message }: ModelMessage): string => message.messageId ?? ''

export const nameOf = ({ id, address }: ModelRecipient): string => `${address} (${id})`
