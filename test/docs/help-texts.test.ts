/** The help texts, from which docs/commands.md, the man pages and the completions are generated. */
import type { Command } from 'commander'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { processShell } from '../../src/cli/process-shell.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { Operator } from '../support/operator.ts'

let operator: Operator
beforeEach(() => {
  operator = new Operator()
})
afterEach(() => operator.leave())

function* allCommands(command: Command): Generator<Command> {
  yield command
  for (const sub of command.commands) yield* allCommands(sub)
}

test('a time in a help text has a unit', async () => {
  const raw = [...allCommands(await buildProgram(processShell()))].flatMap((command) =>
    command.options
      .filter(({ flags, defaultValue, defaultValueDescription }) => {
        const shown = defaultValueDescription ?? defaultValue
        return flags.includes('<time>') && shown !== undefined && !/^\d+(?:\.\d+)?(?:ms|[smhdw])$/.test(String(shown))
      })
      .map(({ flags }) => `${command.name()} ${flags}`),
  )
  expect(raw).toEqual([])
})

test('--share is a percentage', async () => {
  const search = (share: string) => operator.run(['simulate', 'schedule', '--within', '6h', '--share', share])
  expect((await search('0.95')).err).toContain('Expected a percentage from 1 to 100')
  expect((await search('7')).out).toContain('deliver 7 % within 6h')
})
