/** Writes archives of tar(5) in the format ustar. Equal entries give equal bytes: order, owners and times are those given. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { PROGRAM_MODE, type Entry } from './entry.ts'

/** A folder with an owner other than root, or a mode other than 0755. */
export interface OwnFolder {
  readonly path: string
  readonly mode: number
  readonly owner: number
}

export interface TarContents {
  readonly entries: readonly Entry[]
  /** Folders, beside those in which the entries are; null for an archive without folders. */
  readonly folders: readonly OwnFolder[] | null
}

export interface TarOptions {
  /** Folder of the paths that entries are copied from. */
  readonly root: string
  /** Time of all files, in seconds since the epoch. */
  readonly at: number
}

const BLOCK = 512

/** Types of entries by the numbers of POSIX.1-1988. */
const TYPES = { file: '0', link: '2', folder: '5' } as const

interface Header {
  readonly type: keyof typeof TYPES
  readonly path: string
  readonly mode: number
  readonly size: number
  readonly target: string
  readonly owner: number
}

/** The parts of a path in the two members of a header. Throws for one that does not fit. */
function nameParts(path: string): readonly [name: string, prefix: string] {
  if (Buffer.byteLength(path) <= 100) return [path, '']
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)]
    if (name !== '' && Buffer.byteLength(name) <= 100 && Buffer.byteLength(prefix) <= 155) return [name, prefix]
  }
  throw new Error(`${path}: this path is too long for an archive`)
}

const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`

function headerBlock({ type, path, mode, size, target, owner }: Header, at: number): Buffer {
  if (Buffer.byteLength(target) > 100) throw new Error(`${path}: the target ${target} is too long for an archive`)
  const [name, prefix] = nameParts(path)
  const block = Buffer.alloc(BLOCK)
  const write = (text: string, offset: number): number => block.write(text, offset)
  write(name, 0)
  write(octal(mode, 8), 100)
  write(octal(owner, 8), 108)
  write(octal(owner, 8), 116)
  write(octal(size, 12), 124)
  write(octal(at, 12), 136)
  write(' '.repeat(8), 148)
  write(TYPES[type], 156)
  write(target, 157)
  write('ustar\x0000', 257)
  write(octal(0, 8), 329)
  write(octal(0, 8), 337)
  write(prefix, 345)
  write(
    `${octal(
      block.reduce((sum, byte) => sum + byte),
      7,
    )} `,
    148,
  )
  return block
}

/** The folders above a path, from the outermost. */
const above = (path: string): readonly string[] => (dirname(path) === '.' ? [] : [...above(dirname(path)), dirname(path)])

const padding = (size: number): Buffer => Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK)

/** The archive. Throws for a path or a target that does not fit, and for two entries of one path. */
export function tarOf({ entries, folders }: TarContents, { root, at }: TarOptions): Buffer {
  const own = new Map(folders?.map((folder) => [folder.path, folder]))
  const parents = folders === null ? [] : [...entries, ...folders].flatMap(({ path }) => above(path))
  const all = new Map<string, Entry | null>([...parents, ...own.keys()].map((path) => [path, null]))
  for (const entry of entries) {
    if (all.has(entry.path)) throw new Error(`${entry.path} is twice in the archive`)
    all.set(entry.path, entry)
  }
  const blocks = [...all]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([path, entry]) => {
      if (entry === null) {
        const { mode, owner } = own.get(path) ?? { mode: PROGRAM_MODE, owner: 0 }
        return [headerBlock({ type: 'folder', path: `${path}/`, mode, size: 0, target: '', owner }, at)]
      }
      if (entry.kind === 'link') return [headerBlock({ type: 'link', path, mode: 0o777, size: 0, target: entry.target, owner: 0 }, at)]
      const content = entry.kind === 'copy' ? readFileSync(resolve(root, entry.from)) : Buffer.from(entry.text)
      return [
        headerBlock({ type: 'file', path, mode: entry.mode, size: content.length, target: '', owner: 0 }, at),
        content,
        padding(content.length),
      ]
    })
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)])
}

/** Compresses by gzip(1): the zlib of Node has other output on processors with other instructions. */
export const gzipped = (content: Buffer, level: 6 | 9): Buffer =>
  execFileSync('gzip', ['--no-name', `-${level}`], { input: content, maxBuffer: 2 ** 30 })
