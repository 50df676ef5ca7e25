/** A library that lacks an undocumented member which an adapter needs is found when the relay starts. */
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { SMTPConnection as ServerConnection } from 'smtp-server/lib/smtp-connection.js'
import { expect, onTestFinished, test } from 'vitest'
import { requireMembers } from '../../src/system/library-members.ts'
import { createWorld } from '../../src/testkit/index.ts'

/** Renames a method of a class until the test ends, as an update of the library might. */
function renamed(of: { readonly prototype: object }, method: string): void {
  const prototype = of.prototype as Record<string, unknown>
  const original = prototype[method]
  expect(original).toBeTypeOf('function')
  delete prototype[method]
  prototype[`${method}2`] = original
  onTestFinished(() => {
    delete prototype[`${method}2`]
    prototype[method] = original
  })
}

test('nodemailer without a member that sessions override', async () => {
  renamed(SMTPConnection, '_upgradeConnection')
  await expect(createWorld({ seed: 1 })).rejects.toThrow(
    /^the installed nodemailer does not fit: it has no _upgradeConnection; install the version that package\.json of deferd names$/,
  )
})

test('smtp-server without members that connections override', async () => {
  renamed(ServerConnection, '_armTimeout')
  renamed(ServerConnection, 'upgrade')
  await expect(createWorld({ seed: 1 })).rejects.toThrow(/^the installed smtp-server does not fit: it has no _armTimeout, upgrade; /)
})

test('the installed versions fit', async () => {
  const world = await createWorld({ seed: 1 })
  await world.close()
})

test('the exit code is EX_SOFTWARE', () => {
  expect(() => requireMembers<Record<string, unknown>>('some-library', {}, ['gone'])).toThrow(expect.objectContaining({ exitCode: 70 }))
  requireMembers('some-library', { here: undefined }, ['here'])
})
