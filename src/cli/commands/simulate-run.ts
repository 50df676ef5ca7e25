/**
 * `deferd simulate run`: the real queue and the real SMTP client in virtual time, before mail servers that fail as a
 * scenario says. docs/choosing-retry-settings.md tells of scenarios, examples/ has some.
 */
import { basename } from 'node:path'
import type { Command } from 'commander'
import { renderPage } from '../../simulator/page.ts'
import { Progress } from '../../simulator/progress.ts'
import { scenarioJson } from '../../simulator/scenario-figures.ts'
import { scenarioPage } from '../../simulator/scenario-page.ts'
import type { ScenarioResult } from '../../simulator/scenario-record.ts'
import { countArgument, overridesOf } from '../command.ts'
import { scenarioRows, scenarioTable } from '../scenario-table.ts'
import type { Shell } from '../shell.ts'
import { commandLine, readTextFile, several, writeTextFile } from '../simulation-input.ts'
import { jsonLine, plural } from '../text.ts'

interface Options {
  readonly seed: number
  readonly html?: string
  readonly json?: true
}

async function run({ clock, stderr }: Shell, path: string, overrides: readonly string[], seed: number): Promise<ScenarioResult> {
  // The far side and the relay are large, and no other simulation needs them.
  const { readScenario } = await import('../../simulator/scenario-file.ts')
  const { runScenario } = await import('../../simulator/scenario-run.ts')
  const scenario = readScenario(readTextFile(path), basename(path), overrides)
  const messages = scenario.streams.reduce((sum, stream) => sum + stream.messages, 0)
  const progress = new Progress(stderr, clock)
  try {
    return await runScenario(scenario, { seed, onProgress: (done) => progress.report(done, plural(messages, 'message')) })
  } finally {
    await progress.finish()
  }
}

async function print(shell: Shell, command: Command, path: string, options: Options): Promise<void> {
  const result = await run(shell, path, overridesOf(command), options.seed)
  const name = basename(path)
  if (options.html !== undefined) {
    writeTextFile(options.html, renderPage(scenarioPage(result, name, scenarioRows(result), commandLine(command))))
  }
  if (options.json === true) return shell.stdout.write(jsonLine(scenarioJson(result, name, options.seed)))
  return shell.stdout.write(scenarioTable(result, name, options.seed, shell.stdout.columns ?? 110))
}

export function addSimulateRun(parent: Command, shell: Shell): void {
  parent
    .command('run <scenario.toml>')
    .description('what becomes of mail while the far side fails as a scenario says')
    .option('--seed <number>', 'of everything that is left to chance', countArgument, 1)
    .option('-o <name=value>', 'set a parameter in place of the scenario; may be given several times', several)
    .option('--html <file>', 'write a page with plots')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      `
A scenario says which mail comes in, how the relay is configured, and how the far side fails:
  [mail]           messages = 20000, to = "provider.example", over = "1h"
  [config]         as in deferd.toml
  [rule.NAME]      as in a script of deferd sink

Example:
  deferd simulate run examples/rate-limited-provider.toml --html page.html`,
    )
    .action((path: string, options: Options, command: Command) => print(shell, command, path, options))
}
