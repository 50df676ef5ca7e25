/** Ten maps of 10,000 entries each, of which none has an address of the bench: the time of lookups without a match. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

const ENTRIES = 10_000

/** Maps of addresses. The values of all entries are valid in each. */
const ADDRESS_MAPS = [
  'canonical_maps',
  'sender_canonical_maps',
  'recipient_canonical_maps',
  'virtual_alias_maps',
  'smtp_generic_maps',
  'sender_bcc_maps',
  'recipient_bcc_maps',
]

/** Writes the maps into a folder. Returns the options of `deferd start` that name them. */
export function writeMaps(folder: string): readonly string[] {
  const write = (name: string, line: (n: number) => string): string => {
    const path = join(folder, name)
    writeFileSync(path, Array.from({ length: ENTRIES }, (_, n) => `${line(n)}\n`).join(''))
    return `texthash:${path}`
  }
  const address = (n: number): string => `user${n}@domain${n % 100}.test`
  const settings = [
    ...ADDRESS_MAPS.map((name) => `${name}=${write(name, (n) => `${address(n)} other${n}@elsewhere.test`)}`),
    `alias_maps=${write('aliases', (n) => `user${n} other${n}@elsewhere.test`)}`,
    `sender_dependent_relayhost_maps=${write('relayhosts', (n) => `${address(n)} [127.0.0.1]:9`)}`,
    `smtpd_sender_restrictions=check_sender_access ${write('senders', (n) => `${address(n)} REJECT`)}`,
  ]
  return settings.flatMap((setting) => ['-o', setting])
}
