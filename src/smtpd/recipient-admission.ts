/** Decides whether a recipient of RCPT is accepted: by the relay permission, and by access restrictions where there are any. */
import type { AccessRequest } from '../access/access-request.ts'
import type { AccessDecision, AccessRules } from '../access/access-rules.ts'
import { describeAction } from '../access/action-text.ts'
import type { PathAddress } from '../mail/address-path.ts'
import type { DeadEnds } from '../delivery/routing/dead-ends.ts'
import { formatReply, type SmtpReply } from '../mail/smtp-reply.ts'
import type { Events } from '../telemetry/events.ts'
import type { RelayPolicy } from './relay-policy.ts'
import { echo, relayDenied } from './replies.ts'
import type { Transaction } from './transaction.ts'

export interface RecipientRules {
  readonly access: RelayPolicy
  readonly restrictions: Pick<AccessRules, 'isIdle' | 'decide'>
  /** Finds recipients whose mail this relay would return. */
  readonly deadEnds: Pick<DeadEnds, 'refusalOf'>
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
  return rules.deadEnds.refusalOf(recipient, transaction.sender, own)
}

/** True for clients that may send to any recipient. Notices about their mail go to senders that are responsible for it. */
const isOwn = ({ isTrusted, login }: SessionFacts): boolean => isTrusted || login !== undefined

async function restricted(
  { address, given, path }: Recipient,
  { transaction, session, rules }: Circumstances,
): Promise<SmtpReply | undefined> {
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
  const deadEnd = isDiscarded ? undefined : await rules.deadEnds.refusalOf({ address, path }, sender, isOwn(session))
  if (deadEnd !== undefined) return deadEnd
  transaction.take(decision.taken)
  return undefined
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
