/** `deferd suppression`, without a daemon. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from '../../../src/store/sqlite/open-store.ts'
import { Operator } from '../../support/operator.ts'

let operator: Operator

beforeEach(async () => {
  operator = new Operator()
  const { close } = await openStore(operator.directory, { threads: false, create: true })
  await close()
})
afterEach(() => operator.leave())

const says = (...argv: readonly string[]) => operator.says('suppression', ...argv)
const run = (...argv: readonly string[]) => operator.run(['suppression', ...argv])

test('adds, lists, shows and removes entries, with records in the audit log', async () => {
  expect(await says('list')).toBe('No entries.\n')
  await says('add', 'Bob@FAR.example', '--scope', 'us.example', '--reason', 'complaint', '--text', 'he complained')
  await says('add', '@gone.example', '--for', '30d')
  expect(await says('list')).toMatch(
    /^ADDRESS +SCOPE +REASON +ENDS\n@gone\.example +\* +manual +.*\nBob@far\.example +us\.example +complaint +never\n2 entries\n$/,
  )
  expect(JSON.parse(await says('list', '--json', '--reason', 'complaint'))).toMatchObject({
    scope: 'us.example',
    address: 'Bob@far.example',
    state: 'listed',
    text: 'he complained',
    expire_time: null,
  })
  expect(await says('show', 'Bob@far.example')).toMatch(/^Bob@far\.example is listed for senders at us\.example\n {2}reason: complaint\n/)
  expect(await run('remove', 'bob@far.example', '--scope', 'us.example')).toMatchObject({ code: 65 })
  expect(await says('remove', 'Bob@far.example', '--scope', 'us.example', '--dry-run')).toBe(
    'Bob@far.example (us.example)\n1 entry would be removed\n',
  )
  expect(await says('remove', 'Bob@far.example', '--scope', 'us.example')).toBe('Bob@far.example (us.example)\n1 entry removed\n')
  expect(await says('remove', '--since', '1h')).toBe('@gone.example (*)\n1 entry removed\n')
  const audit = (await operator.says('audit', '--json')).trim().split('\n')
  expect(audit.map((line) => (JSON.parse(line) as { readonly action: string }).action).toSorted()).toEqual([
    'suppression-add',
    'suppression-add',
    'suppression-remove',
    'suppression-remove',
  ])
  expect(audit.map((line) => (JSON.parse(line) as { readonly arguments: string }).arguments)).toEqual(
    expect.arrayContaining([
      '--since=1h',
      "Bob@far.example --scope=us.example --reason=complaint --text='he complained'",
      "@gone.example --scope='*' --reason=manual --for=30d",
    ]),
  )
})

test('an address that the entry of its domain refuses has that entry', async () => {
  await says('add', '@closed.example')
  expect(await says('show', 'eve@closed.example')).toMatch(/^@closed\.example is listed for all senders\n/)
  expect(await run('show', 'eve@open.example')).toMatchObject({ code: 65 })
})

test('an export is imported; a mistake in a line imports nothing', async () => {
  const file = (text: string): string => {
    const path = join(operator.directory, 'list.csv')
    writeFileSync(path, text)
    return path
  }
  expect(await says('import', file('a@far.example\nb@far.example\n'), '--scope', 'us.example', '--dry-run')).toBe(
    '2 entries would be imported\n',
  )
  expect(await says('import', file('a@far.example\nb@far.example\n'), '--scope', 'us.example')).toBe('2 entries imported\n')
  const csv = await says('export')
  const lines = await says('export', '--format', 'json')
  await says('remove', '--all')
  expect(await says('import', file(csv))).toBe('2 entries imported\n')
  expect(lines.split('\n')).toHaveLength(3)
  const refused = await run('import', file('c@far.example\nnobody\nd@far.example\nc@far.example\n'))
  expect(refused).toMatchObject({ code: 65 })
  expect(refused.err).toContain(':2: "nobody" is neither an address nor @domain\n')
  expect(refused.err).toContain(':4: repeats line 1: c@far.example for *\n')
  expect((await says('list', '--json')).trim().split('\n')).toHaveLength(2)
})

test('a text of several lines is one line, so that its export is imported', async () => {
  await says('add', 'a@far.example', '--text', ' no such\r\n  user:\t"a"\n')
  const csv = await says('export')
  const path = join(operator.directory, 'list.csv')
  writeFileSync(path, csv)
  expect(await says('import', path)).toBe('1 entry imported\n')
  expect(JSON.parse(await says('list', '--json'))).toMatchObject({ text: 'no such user:?"a"' })
})

test.each([
  [['add', 'bob'], 'is neither an address nor @domain'],
  [['add', '*@b.example'], 'is neither an address nor @domain'],
  [['add', 'a@b.example', '--scope', 'x y'], 'is neither * nor a sender domain'],
  [['remove'], 'name addresses, a condition, or --all'],
  [['remove', '--all', '--since', '1h'], '--all goes with no condition'],
  [['remove', 'a@b.example', '--since', '1h'], 'name addresses, with --scope if needed, or conditions'],
])('%j is refused with 64', async (argv, why) => {
  const { code, err } = await run(...argv)
  expect(err).toContain(why)
  expect(code).toBe(64)
})

test('only a domain whose listings are stopped can be resumed', async () => {
  expect(await run('resume', 'us.example')).toMatchObject({ code: 65 })
})
