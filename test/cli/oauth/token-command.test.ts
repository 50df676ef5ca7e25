/** `deferd oauth test` with a table whose tokens a command prints. */
import { afterEach, expect, test } from 'vitest'
import { OauthSite, USER } from '../../support/oauth-site.ts'

let site: OauthSite | undefined
afterEach(async () => {
  await site?.close()
  site = undefined
})

test('an opaque token is called one; without a next hop, only the token is tested; USER and --hop try another login', async () => {
  const command = ['provider = "command"', 'command = "printf opaque-token; true"']
  const own = (site = await OauthSite.open())
  own.write('deferd.toml', ['[oauth.m365]', ...command].join('\n'))
  const alone = await own.run(['oauth', 'test', 'm365'])
  expect(alone.out).toMatch(/claims {6}none can be read: the token is opaque\nwarning no next hop uses this table/)
  expect(alone.code).toBe(0)
  const there = await own.run(['oauth', 'test', 'm365', USER, '--hop', own.hop, '-o', 'smtp_tls_security_level=encrypt'])
  expect(there.out).toMatch(/^error .*535 5\.7\.3/m)
  expect(there.code).toBe(77)
  expect(own.printed).not.toContain('opaque-token')
})
