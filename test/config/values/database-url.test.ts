import { expect, test } from 'vitest'
import { parseDatabaseUrl, withoutPassword } from '../../../src/config/values/database-url.ts'

const servers = (text: string): readonly string[] | undefined => parseDatabaseUrl(text)?.servers.map(({ url }) => url)

test('a URL with one host is one server', () => {
  expect(parseDatabaseUrl('postgresql://deferd:secret@db.example:5433/mail')).toEqual({
    servers: [{ name: 'db.example:5433', url: 'postgresql://deferd:secret@db.example:5433/mail?' }],
    options: '',
  })
})

test('each host of a list has its own port, and shares user, database and parameters', () => {
  expect(servers('postgres://deferd@h1:5432,h2:5433,[::1]/mail?application_name=x')).toEqual([
    'postgresql://deferd@h1:5432/mail?application_name=x',
    'postgresql://deferd@h2:5433/mail?application_name=x',
    'postgresql://deferd@[::1]/mail?application_name=x',
  ])
})

test('a folder of a Unix socket stands in the parameter host', () => {
  expect(parseDatabaseUrl('postgresql:///mail?host=/run/postgresql')?.servers).toEqual([
    { name: '/run/postgresql', url: 'postgresql:///mail?host=%2Frun%2Fpostgresql' },
  ])
})

test('sslmode has the meaning that it has for libpq, and options stay apart from those of deferd', () => {
  expect(parseDatabaseUrl('postgresql://h/mail?sslmode=require&options=-c%20search_path%3Dq')).toEqual({
    servers: [{ name: 'h', url: 'postgresql://h/mail?sslmode=require&uselibpqcompat=true' }],
    options: '-c search_path=q',
  })
})

test.each([
  'mysql://h/mail',
  'h/mail',
  'postgresql://h',
  'postgresql://h/',
  'postgresql:///mail',
  'postgresql://h:port/mail',
  'postgresql://h,/mail',
  '',
])('%s is no URL of a database', (text) => expect(parseDatabaseUrl(text)).toBeNull())

test('passwords are masked where the URL is shown', () => {
  expect(withoutPassword('postgresql://deferd:s3cr:et@h1,h2/mail?password=other&sslmode=require')).toBe(
    'postgresql://deferd:***@h1,h2/mail?password=***&sslmode=require',
  )
  expect(withoutPassword('postgresql://deferd@h1/mail')).toBe('postgresql://deferd@h1/mail')
  expect(withoutPassword('')).toBe('')
})
