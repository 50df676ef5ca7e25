/** Access entries of commands: their keys, and the sessions that they concern. */
import { expect, test } from 'vitest'
import { AccessEntries, accessKey } from '../../src/access/access-entries.ts'
import { addressForms } from '../../src/access/lookup-forms.ts'
import { parseAddress } from '../../src/mail/address-path.ts'
import { openInlineStore } from '../../src/store/sqlite/clients/inline-store.ts'
import { HOUR } from '../../src/system/clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

const RULES = { delimiters: '+', whole: new Set<string>() }

async function open() {
  const { store, reader } = await openInlineStore({ memory: true })
  const entries = new AccessEntries({ store, reader, clock: new VirtualClock() })
  const isRefused = (path: string) => entries.find('sender', addressForms(parseAddress(path, 'us.example') ?? '', RULES)) !== undefined
  const add = (key: string) => entries.add({ subject: 'sender', key, action: 'REJECT', duration: null, who: 'root' })
  return { store, reader, entries, isRefused, add }
}

test.each(['boss@us.example', '"boss"@US.example', String.raw`"bo\ss"@us.example`])(
  'an entry for %s concerns every form of the address',
  async (key) => {
    const { add, isRefused, reader } = await open()
    await add(key)
    for (const path of ['Boss@us.example', '"boss"@us.example', String.raw`"bo\ss"`, '"boss+x"@us.example'])
      expect(isRefused(path)).toBe(true)
    expect(isRefused('bos@us.example')).toBe(false)
    expect((await reader.records.access.all()).map((entry) => entry.key)).toEqual(['boss@us.example'])
  },
)

test('an entry for an address that needs quotes has them', async () => {
  const { add, isRefused } = await open()
  await add(String.raw`"a\ b"@us.example`)
  expect([isRefused('"a b"@us.example'), isRefused('"ab"@us.example')]).toEqual([true, false])
  for (const key of ['a b@us.example', '"a b', '"a/b', 'a b']) expect(() => accessKey('sender', key)).toThrow('is no key; write an address')
})

test('an entry that an earlier version stored with quotes concerns the address, is replaced and is removed', async () => {
  const { store, reader, entries, isRefused, add } = await open()
  const stored = { subject: 'sender', key: '"boss"@us.example', action: 'REJECT', addedAt: 0, addedBy: 'root', expiresAt: null } as const
  await store.records.access.set(stored)
  await entries.load()
  expect(isRefused('boss@us.example')).toBe(true)
  await add('boss@us.example')
  expect((await reader.records.access.all()).map(({ key }) => key)).toEqual(['boss@us.example'])
  await store.records.access.set(stored)
  expect(await entries.remove('sender', 'boss@us.example', { who: 'root' })).toBe(true)
  expect(isRefused('boss@us.example')).toBe(false)
  expect(await entries.remove('sender', 'boss@us.example', { who: 'root' })).toBe(false)
})

test('the audit log has the arguments of the command, quoted for a shell', async () => {
  const { entries, reader } = await open()
  const about = { subject: 'sender', key: '"a b"@us.example' } as const
  await entries.add({ ...about, action: "REJECT it's enough", duration: 2 * HOUR, who: 'ann' })
  await entries.remove(about.subject, about.key, { who: 'ann' })
  const records = await reader.records.audit.after({ after: 0, limit: 10 })
  expect(records.map((record) => [record.action, record.arguments])).toEqual([
    ['access-add', `sender '"a b"@us.example' 'REJECT it'\\''s enough' --for=2h`],
    ['access-remove', `sender '"a b"@us.example'`],
  ])
})
