/**
 * `deferd simulate run`: runs the real queue and SMTP client in virtual time against simulated mail servers. A scenario defines
 * how the servers fail. docs/choosing-retry-settings.md describes scenarios; examples/ has some.
 */
import { basename } from 'node:path'
import type { Command } from 'commander'
import { renderPage } from '../../../simulator/pages/page.ts'
import { scenarioJson } from '../../../simulator/scenario/scenario-figures.ts'
import { scenarioPage } from '../../../simulator/pages/scenario-page.ts'
import type { ScenarioResult } from '../../../simulator/scenario/scenario-record.ts'
import { countArgument, overridesOf } from '../../shell/config-options.ts'
import { scenarioRows, scenarioTable } from '../../render/scenario-table.ts'
import { displayOf } from '../../shell/display.ts'
import { barText, ProgressLine } from '../../shell/progress.ts'
import type { Shell } from '../../shell/shell.ts'
import { commandLine, readTextFile, several, writeTextFile } from './simulate-options.ts'
import { jsonLine, plural } from '../../../presentation/text.ts'

interface Options {
  readonly seed: number
  readonly html?: string
  readonly json?: true
}

async function run({ clock, stderr }: Shell, path: string, overrides: readonly string[], seed: number): Promise<ScenarioResult> {
  // Loaded on demand, because the relay and the simulated servers load slowly and other simulations do not need them.
  const { readScenario } = await import('../../../simulator/scenario/scenario-file.ts')
  const { runScenario } = await import('../../../simulator/scenario/scenario-run.ts')
  const scenario = readScenario(readTextFile(path), basename(path), overrides)
  const messages = scenario.streams.reduce((sum, stream) => sum + stream.messages, 0)
  const progress = new ProgressLine(stderr, clock)
  try {
    return await runScenario(scenario, { seed, onProgress: (done) => progress.show(barText(done, plural(messages, 'message'))) })
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
  return shell.stdout.write(scenarioTable(result, name, options.seed, displayOf(shell)))
}

export function addSimulateRun(parent: Command, shell: Shell): void {
  parent
    .command('run <scenario.toml>')
    .description('deliver mail in virtual time to servers that fail as a scenario defines')
    .option('--seed <number>', 'seed of all random numbers', countArgument, 1)
    .option('-o <name=value>', 'override a parameter of the scenario; repeatable', several)
    .option('--html <file>', 'write a page with plots')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      `
A scenario defines the incoming mail, the configuration of the relay, and the failures of the remote servers:
  [mail]           messages = 20000, to = "provider.example", over = "1h"
  [config]         as in deferd.toml
  [rule.NAME]      as in a script of deferd sink

Example:
  deferd simulate run examples/rate-limited-provider.toml --html page.html`,
    )
    .action((path: string, options: Options, command: Command) => print(shell, command, path, options))
}
