/** `qshape` with Postfix's options (qshape(1)). */
import { printShape, queuesOf } from '../commands/queue/queue-shape.ts'
import type { Shell } from '../shell/shell.ts'
import { getopt } from './getopt.ts'
import { configFor } from './postqueue.ts'

const ROWS_ON_TERMINAL = 20

const number = (text: string | undefined, byDefault: number): number => (text !== undefined && Number(text) > 0 ? Number(text) : byDefault)

export async function qshape(shell: Shell, args: readonly string[]): Promise<void> {
  const { options, operands } = getopt('qshape', args, 'b:c:lm:n:N:o:pst:w:')
  const value = (letter: string) => options.findLast(({ name }) => name === letter)?.value
  const given = (letter: string) => value(letter) !== undefined
  const { config } = await configFor(shell, 'qshape', options)
  const onTerminal = shell.stdout.columns !== null
  await printShape(shell, config, {
    queues: queuesOf(operands, ['incoming', 'active']),
    bySender: given('s'),
    layout: {
      buckets: number(value('b'), 10),
      minutes: number(value('t'), 5),
      linear: given('l'),
      width: Math.max(80, number(value('w'), 80)),
      parents: given('p') ? number(value('m'), 5) : null,
      rows: onTerminal ? number(value('n'), ROWS_ON_TERMINAL) : undefined,
    },
  })
}
