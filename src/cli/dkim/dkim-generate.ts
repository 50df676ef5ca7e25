/** `deferd dkim generate`: new keys in files of their own, with the TXT records that publish them and the table that uses them. */
import { createPrivateKey, createPublicKey, generateKeyPair } from 'node:crypto'
import { chownSync, existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { domainToASCII } from 'node:url'
import { promisify } from 'node:util'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { isDomain } from '../../config/values/tables/dkim-tables.ts'
import { recordName, recordText, zoneLine } from '../../dkim/key-record.ts'
import { formatStamp } from '../../mail/mail-date.ts'
import { errorCode, errorMessage } from '../../system/caught-error.ts'
import { Account } from '../../daemon/account.ts'
import { jsonLine, maskControls } from '../../presentation/text.ts'
import { makeFolder } from '../../store/folder/folder.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'

type KeyType = 'rsa' | 'ed25519'

interface GenerateOptions {
  readonly selector?: string
  readonly type: KeyType | 'both'
  readonly bits: number
  readonly directory?: string
  readonly json?: true
}

interface WrittenKey {
  readonly selector: string
  readonly type: KeyType
  readonly path: string
  readonly name: string
  readonly record: string
}

const SELECTOR_HELP = 'selector; a type is appended when there are two keys (default: r or e, the year and a letter)'

export function addGenerate(parent: Command, shell: Shell): void {
  subcommand(parent, 'generate <domain>', 'make keys, and print the TXT records that publish them')
    .option('--selector <name>', SELECTOR_HELP, selectorArgument)
    .addOption(new Option('--type <type>', 'type of key').choices(['rsa', 'ed25519', 'both']).default('both'))
    .option('--bits <count>', 'length of RSA keys, from 1024 to 8192', bitsArgument, 2048)
    .option('--directory <path>', 'folder of the files (default: dkim beside the configuration file)')
    .option('--json', 'one JSON object per key')
    .addHelpText(
      'after',
      `
Writes each key in a file of its own, readable by its owner only, and overwrites none. Root gives files and new folders to the
owner of queue_directory, the user of the daemon. Publish the records, wait until
deferd dkim check finds them, then reload deferd. Example:
  deferd dkim generate example.com --directory /etc/deferd/dkim`,
    )
    .action(async (given: string, options: GenerateOptions, command: Command) => {
      const domain = domainToASCII(given).toLowerCase()
      if (!isDomain(domain)) throw new CommandError(EX.usage, `${maskControls(given)} is not a domain`)
      const { file, config } = await configOf(shell, command)
      const owner = Account.ofDaemon(config.queue_directory, undefined)
      const folder = resolve(options.directory ?? join(file === null ? '.' : dirname(file), 'dkim'))
      const year = formatStamp(shell.clock.now()).slice(0, 4)
      const types: readonly KeyType[] = options.type === 'both' ? ['rsa', 'ed25519'] : [options.type]
      const keys: WrittenKey[] = []
      for (const { type, selector } of selectors(types, { domain, folder, year, given: options.selector })) {
        keys.push(await writeKey({ domain, folder, selector, type, bits: options.bits, owner }))
      }
      await shell.stdout.write(options.json === true ? keys.map((key) => jsonLine({ domain, ...key })).join('') : report(domain, keys))
    })
}

function selectorArgument(text: string): string {
  if (!isDomain(text)) throw new InvalidArgumentError('Expected letters, digits and hyphens, such as s2026.')
  return text.toLowerCase()
}

function bitsArgument(text: string): number {
  const bits = Number(text)
  if (!/^\d+$/.test(text) || bits < 1024 || bits > 8192) throw new InvalidArgumentError('Expected a number from 1024 to 8192.')
  return bits
}

interface SelectorFacts {
  readonly domain: string
  readonly folder: string
  readonly year: string
  readonly given: string | undefined
}

/** A selector for each type: the given one, or one with the first letter that has no file yet. */
function selectors(
  types: readonly KeyType[],
  { domain, folder, year, given }: SelectorFacts,
): readonly { type: KeyType; selector: string }[] {
  const named = (name: (type: KeyType) => string) => types.map((type) => ({ type, selector: name(type) }))
  if (given !== undefined) return named((type) => (types.length > 1 ? `${given}-${type}` : given))
  for (const letter of 'abcdefghijklmnopqrstuvwxyz') {
    const wanted = named((type) => `${type[0]}${year}${letter}`)
    if (wanted.every(({ selector }) => !existsSync(fileOf(folder, domain, selector)))) return wanted
  }
  throw new CommandError(EX.cannotCreate, `${folder} has keys of ${year} with all letters: name a --selector`)
}

const fileOf = (folder: string, domain: string, selector: string): string => join(folder, `${domain}.${selector}.pem`)

interface KeyWish {
  readonly domain: string
  readonly folder: string
  readonly selector: string
  readonly type: KeyType
  readonly bits: number
  /** Null for the user of the process. */
  readonly owner: Account | null
}

async function writeKey({ domain, folder, selector, type, bits, owner }: KeyWish): Promise<WrittenKey> {
  const path = fileOf(folder, domain, selector)
  const pem = await newKey(type, bits)
  try {
    const made = makeFolder(folder)
    if (owner !== null) for (const one of made) chownSync(one, owner.uid, owner.gid)
    const file = await open(path, 'wx', 0o600)
    if (owner !== null) await file.chown(owner.uid, owner.gid)
    await file.writeFile(pem)
    await file.sync()
    await file.close()
  } catch (cause) {
    const why = errorCode(cause) === 'EEXIST' ? 'it exists: move the file away, or name another --selector' : errorMessage(cause)
    throw new CommandError(EX.cannotCreate, `cannot write ${path}: ${why}`, { cause })
  }
  const record = recordText(createPublicKey(createPrivateKey(pem)))
  return { selector, type, path, name: recordName(selector, domain), record }
}

async function newKey(type: KeyType, bits: number): Promise<string> {
  const { privateKey } =
    type === 'rsa' ? await promisify(generateKeyPair)('rsa', { modulusLength: bits }) : await promisify(generateKeyPair)('ed25519')
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

function report(domain: string, keys: readonly WrittenKey[]): string {
  const entries = keys.map(({ selector, path }) => JSON.stringify(`${selector}:${path}`))
  return [
    ...keys.map(({ path }) => path),
    '',
    'Records for a zone file:',
    ...keys.map(({ name, record }) => zoneLine(name, record)),
    '',
    'The same for a form: name, then text',
    ...keys.flatMap(({ name, record }) => [name, record]),
    '',
    'Table for the configuration:',
    `[dkim.${JSON.stringify(domain)}]`,
    `keys = [${entries.join(', ')}]`,
    '',
  ].join('\n')
}
