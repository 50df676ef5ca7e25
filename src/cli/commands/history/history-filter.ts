/** The options of `deferd history` that select messages. */
import { Option, type Command } from 'commander'
import { FINAL_STATES } from '../../../mail/message.ts'
import { formatInstant, isRange, NAMED_INSTANT } from '../../../mail/message-times.ts'
import type { HistoryQuery } from '../../../queries/departed-mail.ts'
import type { WallTime } from '../../../system/clock.ts'
import { formatDuration } from '../../../system/duration.ts'
import { durationArgument, instantArgument } from '../../shell/config-options.ts'
import { CommandError, EX } from '../../shell/exit.ts'

export interface FilterOptions extends Omit<HistoryQuery, 'left_after' | 'left_before'> {
  readonly leftAfter?: WallTime
  readonly leftBefore?: WallTime
}

export const withHistoryFilter = (command: Command): Command =>
  command
    .option('--sender <address>', 'envelope sender; * stands for anything, <> for the null sender')
    .option('--recipient <address>', 'recipient; * stands for anything')
    .addOption(new Option('--outcome <name>', 'outcome of the recipient; removed: deleted or requeued').choices(FINAL_STATES))
    .option('--class <name>', 'class of the message: the name of a [class.NAME] table')
    .option('--status <code>', 'status of the last attempt, or of the reply to it: 5.7.1; * stands for anything')
    .option('--since <time>', 'left the queue less than this ago: 30m, 2h, 1d', durationArgument)
    .option('--left-after <time>', `left the queue at this time or later: ${NAMED_INSTANT}`, instantArgument)
    .option('--left-before <time>', `left the queue before this time: ${NAMED_INSTANT}`, instantArgument)

/** Throws CommandError (64) for a range without times. */
export function historyQueryOf({
  sender,
  recipient,
  outcome,
  class: name,
  status,
  since,
  leftAfter,
  leftBefore,
}: FilterOptions): HistoryQuery {
  if (!isRange(leftAfter, leftBefore)) throw new CommandError(EX.usage, '--left-before is not after --left-after: no message left then')
  return { sender, recipient, outcome, class: name, status, since, left_after: leftAfter, left_before: leftBefore }
}

/** The conditions as the API takes them. */
export const requestedHistory = ({ since, left_after: after, left_before: before, ...conditions }: HistoryQuery) => ({
  ...conditions,
  since: since === undefined ? undefined : formatDuration(since),
  left_after: after === undefined ? undefined : formatInstant(after),
  left_before: before === undefined ? undefined : formatInstant(before),
})
