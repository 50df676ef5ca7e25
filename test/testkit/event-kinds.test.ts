import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

/** Values of a discriminating member in the declarations of a file. */
const kindsIn = (path: string, member: string) =>
  [...read(path).matchAll(new RegExp(`readonly ${member}: '([a-z-]+)'`, 'g'))].map((match) => match[1] ?? '')

test('docs/testkit.md lists every kind of event of remote servers', () => {
  const page = read('docs/testkit.md')
  const missing = kindsIn('src/testkit/remote/remote-events.ts', 'event').filter((kind) => !page.includes(`\`${kind}\``))
  expect(missing).toEqual([])
})
