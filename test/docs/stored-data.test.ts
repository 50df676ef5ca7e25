/** docs/stored-data.md names every table of both databases, and no others. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)

function tables(folder: string): readonly string[] {
  const files = readdirSync(new URL(folder, root)).filter((name) => name.endsWith('.sql'))
  return files.flatMap((name) =>
    [...readFileSync(new URL(`${folder}${name}`, root), 'utf8').matchAll(/^create (?:virtual )?table (?:if not exists )?(\w+)/gm)].map(
      ([, table]) => table ?? '',
    ),
  )
}

test('the page of what is stored names every table', () => {
  const page = readFileSync(new URL('docs/stored-data.md', root), 'utf8')
  const rows = page.split('\n').filter((line) => line.startsWith('|'))
  const named = rows.flatMap((row) => [...(row.split('|')[2] ?? '').matchAll(/`(\w+)`/g)].map(([, table]) => table ?? ''))
  const places = ['maildrop']
  expect([...new Set(named)].filter((name) => !places.includes(name)).toSorted()).toEqual(
    [...new Set([...tables('migrations/'), ...tables('migrations/postgres/')])].toSorted(),
  )
})
