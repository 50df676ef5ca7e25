/** `deferd dkim`: keys and their records in DNS, and signatures of single messages. */
import type { Command } from 'commander'
import type { Config } from '../../config/options.ts'
import { recordName, recordProblem } from '../../dkim/key-record.ts'
import { loadDkimKeys, type DkimKey } from '../../dkim/keys.ts'
import type { Lookup } from '../../system/net.ts'
import { jsonLine, maskControls } from '../../presentation/text.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { addGenerate } from './dkim-generate.ts'
import { addMessageCommands } from './dkim-message.ts'

interface JsonOption {
  readonly json?: true
}

interface Listed extends DkimKey {
  readonly domain: string
  readonly name: string
}

/** The keys of the tables of a domain, or of all tables. */
function keysOf(config: Config, domain: string | undefined): readonly Listed[] {
  const wanted = domain?.toLowerCase()
  const tables = [...loadDkimKeys(config).values()].filter((table) => wanted === undefined || table.domain === wanted)
  const keys = tables.flatMap(({ domain: own, keys: found }) =>
    found.map((key) => ({ ...key, domain: own, name: recordName(key.selector, own) })),
  )
  if (keys.length > 0) return keys
  const asked = maskControls(domain ?? 'any domain')
  throw new CommandError(EX.config, `there is no [dkim] table for ${asked}: deferd dkim generate DOMAIN makes keys and prints one`)
}

function shown({ name, algorithm, bits, path, staged, record }: Listed): string {
  const use = staged ? 'does not sign yet (marked with "?")' : 'signs'
  return `${name}\n  ${algorithm}, ${bits} bits, ${use}\n  ${path}\n  ${record}\n`
}

/** The finding about the record of a key. `verdict` is `unknown` when the look-up failed for now. */
interface Finding {
  readonly verdict: 'ok' | 'wrong' | 'unknown'
  readonly text: string
}

function findingOf(found: Lookup<string>, { record, staged }: Listed): Finding {
  if (found.kind === 'failed') return { verdict: 'unknown', text: `the look-up failed: ${found.reason}` }
  const problem = recordProblem(found.kind === 'found' ? found.records : [], record)
  if (problem !== null) return { verdict: 'wrong', text: problem }
  return { verdict: 'ok', text: staged ? 'published; remove the "?" from the table to sign with it' : 'published' }
}

const EXIT: Readonly<Record<Finding['verdict'], number>> = { ok: 0, unknown: EX.temporary, wrong: EX.data }

/** `end` ends the command with an exit code. */
export function addDkim(program: Command, shell: Shell, end: (code: number) => void): void {
  const parent = program.command('dkim').description('DKIM keys, their records in DNS, and signatures')
  addGenerate(parent, shell)
  subcommand(parent, 'show [domain]', 'print the keys of the [dkim] tables with their TXT records')
    .option('--json', 'one JSON object per key')
    .action(async (domain: string | undefined, { json }: JsonOption, command: Command) => {
      const { config } = await configOf(shell, command)
      for (const key of keysOf(config, domain)) await shell.stdout.write(json === true ? jsonLine(asJson(key)) : shown(key))
    })
  subcommand(parent, 'check [domain]', 'compare the keys with their TXT records in DNS')
    .option('--json', 'one JSON object per key')
    .addHelpText('after', '\nExit code 0 when all records fit, 65 when one is missing or differs, 75 when a look-up failed for now.')
    .action(async (domain: string | undefined, { json }: JsonOption, command: Command) => {
      const { config } = await configOf(shell, command)
      const { SystemNet } = await import('../../system/system-net.ts')
      const net = new SystemNet({ dnsServers: config.dns_servers })
      const verdicts = new Set<Finding['verdict']>()
      for (const key of keysOf(config, domain)) {
        const { verdict, text } = findingOf(await net.lookupTxt(key.name), key)
        verdicts.add(verdict)
        const { domain: own, selector, name } = key
        const line = `${verdict.padEnd(9)}${name}: ${maskControls(text)}\n`
        await shell.stdout.write(json === true ? jsonLine({ domain: own, selector, name, verdict, text }) : line)
      }
      end(EXIT[verdicts.has('wrong') ? 'wrong' : verdicts.has('unknown') ? 'unknown' : 'ok'])
    })
  addMessageCommands(parent, shell, end)
}

const asJson = ({ domain, selector, algorithm, bits, path, staged, name, record }: Listed) => ({
  domain,
  selector,
  algorithm,
  bits,
  path,
  signs: !staged,
  name,
  record,
})
