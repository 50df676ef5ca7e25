/** Confirmation of operations on many messages. */
import { plural } from '../../presentation/text.ts'
import type { Shell } from './shell.ts'

const MOST_UNCONFIRMED = 1_000

/** Asks an operator at a terminal before more than MOST_UNCONFIRMED messages are changed; `matched` is null when that is known to be unneeded. */
export async function isConfirmed(
  shell: Shell,
  operation: string,
  { matched, yes }: { readonly matched: number | null; readonly yes: boolean },
): Promise<boolean> {
  if (yes || shell.stdout.columns === null || matched === null || matched <= MOST_UNCONFIRMED) return true
  return agrees(shell, `${operation} ${plural(matched, 'message')}?`)
}

/** Asks the operator. True when the operator agrees, or cannot be asked. */
export async function agrees(shell: Shell, question: string): Promise<boolean> {
  const answer = await shell.ask(`${question} [y/N] `)
  return answer === null || /^y(es)?$/i.test(answer.trim())
}
