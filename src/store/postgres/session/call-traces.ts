/** Traces of calls: rows that show later whether their transaction was committed. */
import type { MessageId, RecipientId } from '../../../mail/message.ts'
import type { Call } from '../../methods.ts'

/** Message ids that exist only after a commit of the call. */
export function newMessages(call: Call): readonly MessageId[] {
  if (call.method === 'enqueue') return [call.args[0].message.id]
  if (call.method === 'report') return call.args[0].notices.map(({ message }) => message.id)
  if (call.method === 'resend') return call.args[0].map(({ entry }) => entry.message.id)
  if (call.method === 'operate') return call.args[0].flatMap(({ operation }) => (operation.kind === 'requeue' ? [operation.newId] : []))
  return []
}

/** Leases that end with a commit of the call. */
export function endedLeases(call: Call): readonly RecipientId[] {
  if (call.method === 'settle') return call.args[0].recipients.map(({ recipient }) => recipient)
  return call.method === 'giveBack' ? call.args[0] : []
}

export const leavesTrace = (call: Call): boolean => newMessages(call).length + endedLeases(call).length > 0
