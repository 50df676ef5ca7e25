/** Grammar of the comments: each begins with a verb or a noun phrase. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const filesUnder = (folder: string, ending: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name))

const sources = filesUnder('src', '.ts')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

test('no comment begins with a free relative clause', () => {
  const commented = [
    ...sources,
    ...['test', 'scripts', 'bin'].flatMap((folder) => [...filesUnder(folder, '.ts'), ...filesUnder(folder, '.js')]),
  ]
  const opening = /^\s*(?:\/\*\*|\*|\/\/)\s+(?:What|Who|Whoever|Whatever|Whom|Where|Wherever|Nobody|Somebody|Everybody)\b.*/
  // Looks at the first line of each comment, because later lines continue a sentence.
  const beginning = commented.flatMap((path) =>
    read(path)
      .split('\n')
      .filter((line, i, lines) => opening.test(line) && !/^\s*(?:\*\s+\S|\/\/)/.test(lines[i - 1] ?? ''))
      .map((line) => `${path}: ${line.trim()}`),
  )
  expect(beginning).toEqual([])
})
