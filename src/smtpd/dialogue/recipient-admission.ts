/**
 * Decides whether a recipient of RCPT is accepted: by the relay permission, by access restrictions where there are any, and by the suppression
 * list.
 */
import type { AccessRequest } from '../../access/access-request.ts'
import type { AccessDecision, AccessRules } from '../../access/access-rules.ts'
import { describeAction } from '../../access/action-text.ts'
import type { PathAddress } from '../../mail/address-path.ts'
import type { DeadEnds } from '../../delivery/routing/dead-ends.ts'
import { formatReply, type SmtpReply } from '../../mail/smtp-reply.ts'
import { errorMessage } from '../../system/caught-error.ts'
import type { Clock } from '../../system/clock.ts'
import { rethrowUnlessUnavailable } from '../../store/queue-store.ts'
import { suppressedReply } from '../../suppression/refusal-text.ts'
import type { Suppressions } from '../../suppression/suppressions.ts'
import type { Events } from '../../telemetry/events.ts'
import type { RelayPolicy } from './relay-policy.ts'
import { echo, lookupFailed, relayDenied } from './replies.ts'
import type { Transaction } from './transaction.ts'

export interface RecipientRules {
  readonly access: RelayPolicy
  readonly restrictions: Pick<AccessRules, 'isIdle' | 'decide'>
  /** Finds recipients whose mail this relay would return. */
  readonly deadEnds: Pick<DeadEnds, 'refusalOf'>
  /** The suppression list; none when absent. */
  readonly suppressions: Pick<Suppressions, 'find' | 'report'> | undefined
  readonly clock: Pick<Clock, 'wall'>
  readonly events: Events
}

/** Properties of the session on which the decision depends. */
export type SessionFacts = Pick<AccessRequest, 'client' | 'helo' | 'protocol' | 'login' | 'isTrusted' | 'encryption'>

interface Circumstances {
  readonly transaction: Transaction
  readonly session: SessionFacts
  readonly rules: RecipientRules
}

/** A recipient, and the path that the client gave for it. */
interface Recipient extends PathAddress {
  readonly path: string
}

/** Returns the reply that refuses a recipient, and undefined when it is accepted. Actions of restrictions are noted in the transaction. */
export function refusalOf(recipient: Recipient, about: Circumstances): SmtpReply | undefined | Promise<SmtpReply | undefined> {
  const { transaction, session, rules } = about
  // A message that is discarded needs no further decision, as in Postfix smtpd.
  if (transaction.handling?.discard === true) return undefined
  if (!rules.restrictions.isIdle) return restricted(recipient, about)
  const own = isOwn(session)
  if (!own && !rules.access.isOpen(recipient.address)) return relayDenied(recipient.path)
  const deadEnd = rules.deadEnds.refusalOf(recipient, transaction.sender, own)
  return deadEnd === undefined ? suppressed(recipient, about) : deadEnd.then((reply) => reply ?? suppressed(recipient, about))
}

/** True for clients that may send to any recipient. Notices about their mail go to senders that are responsible for it. */
const isOwn = ({ isTrusted, login }: SessionFacts): boolean => isTrusted || login !== undefined

async function restricted(recipient: Recipient, about: Circumstances): Promise<SmtpReply | undefined> {
  const { transaction, session, rules } = about
  const { address, given, path } = recipient
  const { sender, givenSender, declaredSize: size, instance } = transaction
  const envelope = { sender, recipient: address, given: { sender: givenSender, recipient: given } }
  const isOpen = rules.access.isOpen(address)
  const isInRelayDomains = rules.access.isInRelayDomains(address)
  const request = { ...session, ...envelope, path: echo(path), size, instance, isOpen, isInRelayDomains }
  const decision = await rules.restrictions.decide(request)
  report(decision, request, { events: rules.events, isHeld: transaction.handling?.hold === true })
  const { outcome } = decision
  if (outcome !== 'permit') return outcome
  const isDiscarded = decision.taken.some(({ action }) => action.kind === 'discard')
  const refusal = isDiscarded
    ? undefined
    : ((await rules.deadEnds.refusalOf({ address, path }, sender, isOwn(session))) ?? (await suppressed(recipient, about)))
  if (refusal !== undefined) return refusal
  transaction.take(decision.taken)
  return undefined
}

/** The reply for a recipient on the suppression list. Most recipients have no entry, which needs no read. */
function suppressed(
  { address, path }: Recipient,
  { transaction: { sender }, rules }: Circumstances,
): undefined | Promise<SmtpReply | undefined> {
  const { suppressions, clock, events } = rules
  const search = suppressions?.find(sender, address)
  if (suppressions === undefined || search === undefined) return undefined
  return search.then(
    (found) => {
      if (found === undefined) return undefined
      suppressions.report(found, sender, address)
      return found.isRefused ? suppressedReply(echo(path), found.entry, clock.wall) : undefined
    },
    (error: unknown) => {
      rethrowUnlessUnavailable(error)
      events.emit({ kind: 'note', level: 'warning', text: `cannot read the suppression list: ${errorMessage(error)}` })
      return lookupFailed(path)
    },
  )
}

/** Logs the actions for a recipient. A message is held once. */
function report(
  { taken, warnings }: AccessDecision,
  { client, sender, recipient, protocol, helo }: AccessRequest,
  { events, isHeld }: { readonly events: Events; readonly isHeld: boolean },
): void {
  const about = { kind: 'access-action', client, sender, recipient, protocol, helo } as const
  for (const one of taken) if (one.action.kind !== 'hold' || !isHeld) events.emit({ ...about, ...describeAction(one) })
  for (const reply of warnings) events.emit({ ...about, action: 'reject_warning', text: formatReply(reply) })
}
