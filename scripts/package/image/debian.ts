/** The packages of Debian in an image: the libraries that Node needs, certificates and time zones. Neither root nor a container is needed. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { DEBIAN, type Architecture } from '../architecture.ts'
import { copy, link, text, type Entry } from '../entry.ts'

/** Licences of the packages (SPDX expressions). gcc-12-base has the copyright file of the libraries of GCC. */
const LICENCES = {
  'ca-certificates': 'MPL-2.0 AND GPL-2.0-or-later',
  'gcc-12-base': 'GPL-3.0-or-later WITH GCC-exception-3.1',
  libc6: 'LGPL-2.1-or-later',
  'libgcc-s1': 'GPL-3.0-or-later WITH GCC-exception-3.1',
  'libstdc++6': 'GPL-3.0-or-later WITH GCC-exception-3.1',
  tzdata: 'LicenseRef-public-domain',
} as const
type Name = keyof typeof LICENCES

const NAMES = Object.keys(LICENCES) as Name[]

/** Packages of which there is one file for all architectures. */
const COMMON: ReadonlySet<Name> = new Set(['ca-certificates', 'tzdata'])

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'

const SOURCES = [
  'http://deb.debian.org/debian bookworm main',
  'http://deb.debian.org/debian bookworm-updates main',
  'http://deb.debian.org/debian-security bookworm-security main',
]
  .map((source) => `deb [signed-by=${KEYRING}] ${source}\n`)
  .join('')

/** A package of Debian, as it is in a bill of materials. */
export interface DebianPackage {
  readonly name: string
  readonly version: string
  readonly architecture: string
  readonly license: string
  /** SHA-256 of its file, in hexadecimal digits. */
  readonly digest: string
}

interface Unpacked {
  readonly packages: readonly DebianPackage[]
  readonly entries: readonly Entry[]
}

const run = (program: string, args: readonly string[], cwd?: string): string =>
  execFileSync(program, args, {
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C' },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd === undefined ? {} : { cwd }),
  })

/** Gets the packages of the architectures from the mirror into the folder `to`. The lists of the system's apt stay as they are. Throws when apt-get(8) fails. */
export function downloadPackages(architectures: readonly Architecture[], work: string, to: string): void {
  const state = join(work, 'apt')
  for (const folder of ['lists/partial', 'archives/partial', 'parts']) mkdirSync(join(state, folder), { recursive: true })
  writeFileSync(join(state, 'sources.list'), SOURCES)
  writeFileSync(join(state, 'status'), '')
  mkdirSync(to, { recursive: true })
  const [first] = architectures.map((architecture) => DEBIAN[architecture])
  const own = NAMES.filter((name) => !COMMON.has(name))
  const names = [...COMMON, ...architectures.flatMap((architecture) => own.map((name) => `${name}:${DEBIAN[architecture]}`))]
  const settings = [
    `Dir::State=${state}`,
    `Dir::State::Lists=${join(state, 'lists')}`,
    `Dir::State::status=${join(state, 'status')}`,
    `Dir::Cache=${state}`,
    `Dir::Etc::SourceList=${join(state, 'sources.list')}`,
    `Dir::Etc::SourceParts=${join(state, 'parts')}`,
    `APT::Architecture=${first}`,
    `APT::Architectures=${architectures.map((architecture) => DEBIAN[architecture]).join(',')}`,
    'APT::Sandbox::User=root',
    'Acquire::Languages=none',
    'Acquire::Retries=3',
  ]
  const apt = (...args: readonly string[]): string =>
    run('apt-get', ['--quiet', ...settings.flatMap((setting) => ['-o', setting]), ...args], to)
  apt('update')
  apt('download', ...names)
}

/** Files that no program of an image reads: documents, character sets of iconv(3), and zones with leap seconds. */
const LEFT_OUT =
  /^(?:usr\/share\/(?:lintian|gcc|gdb|bug|man|doc-base|zoneinfo\/right|zoneinfo\/posix)|usr\/s?bin|sbin|usr\/lib\/[^/]+\/gconv|etc\/ca-certificates|etc\/ld\.so)\//
const DOCUMENTS = /^usr\/share\/doc\//

const isKept = (path: string): boolean =>
  !LEFT_OUT.test(path) && (!DOCUMENTS.test(path) || /^[^/]+\/copyright$/.test(path.replace(DOCUMENTS, '')))

/** The paths of the files and links in a folder. Links to folders are not followed, as the recursive form of readdir would. */
const pathsBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((file) => {
    const path = join(folder, file.name)
    return file.isDirectory() ? pathsBelow(path) : [path]
  })

/** The files of a folder, with their modes and links. */
const entriesBelow = (folder: string): readonly Entry[] =>
  pathsBelow(folder)
    .toSorted()
    .flatMap((full): Entry[] => {
      const [path, file] = [relative(folder, full), lstatSync(full)]
      if (file.isSymbolicLink()) return isKept(path) || /^usr\/share\/doc\/[^/]+$/.test(path) ? [link(path, readlinkSync(full))] : []
      return isKept(path) ? [copy(full, path, file.mode & 0o777)] : []
    })

/** The certificates of all authorities in one file, as update-ca-certificates(8) writes them. */
const certificates = (entries: readonly Entry[]): Entry =>
  text(
    'etc/ssl/certs/ca-certificates.crt',
    entries
      .flatMap((entry) =>
        entry.kind === 'copy' && entry.path.startsWith('usr/share/ca-certificates/') ? [readFileSync(entry.from, 'utf8').trimEnd()] : [],
      )
      .join('\n')
      .concat('\n'),
  )

/** The files that scanners of images read: the system and its packages, each in a file, as dpkg(1) describes them. */
const OS_RELEASE = `PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\nID=debian\n`

function fileOf(folder: string, name: Name, architecture: Architecture): string {
  const ending = `_${COMMON.has(name) ? 'all' : DEBIAN[architecture]}.deb`
  const found = readdirSync(folder).filter((file) => file.startsWith(`${name}_`) && file.endsWith(ending))
  const [file] = found
  if (file === undefined || found.length > 1)
    throw new Error(`${folder} has ${found.length} files ${name}_*${ending}: one is needed, as apt-get(8) downloads it`)
  return join(folder, file)
}

/** Unpacks the packages of `folder` for an architecture into `work`. Throws when one is absent, or there are two of one. */
export function unpackPackages(folder: string, architecture: Architecture, work: string): Unpacked {
  const to = join(work, `debian-${architecture}`)
  mkdirSync(to)
  const unpacked = NAMES.map((name) => {
    const file = fileOf(folder, name, architecture)
    run('dpkg-deb', ['--extract', file, to])
    const control = run('dpkg-deb', ['--field', file])
    const field = (member: string): string => new RegExp(`^${member}: (.*)$`, 'm').exec(control)?.[1] ?? ''
    const digest = createHash('sha256').update(readFileSync(file)).digest('hex')
    const described = { name, version: field('Version'), architecture: field('Architecture'), license: LICENCES[name], digest }
    return { described, status: text(`var/lib/dpkg/status.d/${name}`, control) }
  })
  const entries = entriesBelow(to)
  return {
    packages: unpacked.map(({ described }) => described),
    entries: [
      ...entries,
      certificates(entries),
      text('usr/lib/os-release', OS_RELEASE),
      link('etc/os-release', '../usr/lib/os-release'),
      ...unpacked.map(({ status }) => status),
    ],
  }
}

/** Copies the packages of an image, which may be absent from the mirror later. */
export function keepPackages(from: string, architectures: readonly Architecture[], to: string): void {
  mkdirSync(to, { recursive: true })
  for (const architecture of architectures)
    for (const name of NAMES) {
      const file = fileOf(from, name, architecture)
      copyFileSync(file, join(to, file.slice(from.length + 1)))
    }
}
