/** `deferd map query`: looks up a key in a lookup table, like postmap -q. */
import type { Command } from 'commander'
import { parseTables } from '../../config/values/lookup-tables.ts'
import { CLASS_MAPS } from '../../config/values/tables/class-options.ts'
import type { Config } from '../../config/options.ts'
import type { LookupTable } from '../../rewriting/lookup-table.ts'
import { CHECK_NAMES } from '../../checks/check-tables.ts'
import { SENDER_TABLE_NAMES } from '../../delivery/routing/routing-tables.ts'
import { openNamed, TABLE_NAMES } from '../../rewriting/tables.ts'
import { errorMessage } from '../../system/caught-error.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import { maskControls } from '../../presentation/text.ts'
import type { Shell } from '../shell/shell.ts'

/** Exit code for a key that no table has, as of postmap -q. */
const NOT_FOUND = 1

const TABLE_PARAMETERS = [...TABLE_NAMES, ...SENDER_TABLE_NAMES, ...CHECK_NAMES, ...CLASS_MAPS, 'smtpd_sender_login_maps'] as const

const sourcesOf = (config: Config, name: string) => {
  const known = TABLE_PARAMETERS.find((parameter) => parameter === name)
  if (known !== undefined) return config[known]
  if (name === 'transport_maps') return config.transport_tables
  if (name.includes(':')) return parseTables(name)
  throw new Error(
    `${name} names no lookup tables; name one of ${['transport_maps', ...TABLE_PARAMETERS].join(', ')}, or a table such as texthash:/PATH`,
  )
}

function tableOf(config: Config, name: string): LookupTable['find'] {
  if (name === 'transport_maps' && config.transport_tables.length === 0) return (key: string) => config.transport_maps.get(key)
  try {
    const { table } = openNamed(name, sourcesOf(config, name), config)
    return table.find
  } catch (error) {
    throw new CommandError(EX.config, maskControls(errorMessage(error)))
  }
}

/** `end` ends the command with an exit code. */
export function addMap(program: Command, shell: Shell, end: (code: number) => void): void {
  const parent = program.command('map').description('look up keys in lookup tables')
  subcommand(parent, 'query <name> <key>', 'print the value of a key, like postmap -q; exit code 1 without one')
    .addHelpText(
      'after',
      `
NAME is a parameter, or a table such as texthash:/PATH. The key is looked up as it is, without the forms of an address.
For header_checks, it is a header field: "Subject: hello".

Examples:
  deferd map query canonical_maps ann@example.com
  deferd map query inline:{ann@example.com=eve@example.com} ann@example.com`,
    )
    .action(async (name: string, key: string, _options: unknown, command: Command) => {
      const { config } = await configOf(shell, command)
      const value = tableOf(config, name)(key.toLowerCase(), key)
      if (value === undefined) end(NOT_FOUND)
      else await shell.stdout.write(`${value.split('\t').map(maskControls).join('\t')}\n`)
    })
}
