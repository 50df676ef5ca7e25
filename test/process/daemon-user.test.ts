/** Commands of root see what the daemon of another user will see, give it what they write, and learn whether it takes a reload. */
import { chmodSync, chownSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { CERTIFICATE, KEY } from '../support/certificates.ts'
import { DaemonFolder, type Ended } from '../support/started-daemon.ts'

const NOBODY = { uid: 65_534, gid: 65_534 }

let folder: DaemonFolder
let cert: string
let key: string
beforeEach(() => {
  folder = new DaemonFolder()
  // The folder for temporary files of the tests is private.
  chmodSync(tmpdir(), 0o755)
  chmodSync(folder.path, 0o755)
  cert = join(folder.path, 'cert.pem')
  key = join(folder.path, 'key.pem')
  writeFileSync(cert, CERTIFICATE)
  writeFileSync(key, KEY, { mode: 0o600 })
})
afterEach(() => folder.close())

const tls = (): Readonly<Record<string, string>> => ({ smtp_tls_cert_file: cert, smtp_tls_key_file: key, dns_servers: '127.0.0.1:9' })

/** The queue folder of a daemon of the user nobody. */
async function ownedQueue(): Promise<string> {
  const queue = join(folder.path, 'queue')
  mkdirSync(queue, { mode: 0o700 })
  chownSync(queue, NOBODY.uid, NOBODY.gid)
  const daemon = folder.run(['start'], {}, NOBODY)
  await daemon.prints('queue directory')
  daemon.child.kill('SIGTERM')
  await daemon.ended
  return queue
}

describe.runIf(process.getuid?.() === 0)('root', () => {
  test('finds keys that only root can read, in all forms of check, as the start does', async () => {
    await ownedQueue()
    const commands = [['check'], ['check', '--full'], ['check', '--user', 'nobody'], ['check', 'domain', 'far.example']] as const
    const run = (command: readonly string[], user: { readonly uid?: number; readonly gid?: number } = {}): Promise<Ended> =>
      folder.run(command, tls(), user).ended
    const refusal = `smtp_tls_key_file: cannot read ${key}: EACCES`
    for (const command of [...commands, ['check', 'domain', 'far.example', '--user', 'nobody'], ['start', '--user', 'nobody']]) {
      const { code, out, err } = await run(command)
      expect([command, code]).toEqual([command, 78])
      expect(out + err).toContain(refusal)
      expect(out + err).not.toContain('chown')
    }
    expect((await run(['start'], NOBODY)).err).toContain(refusal)

    chownSync(key, NOBODY.uid, NOBODY.gid)
    for (const command of commands.slice(0, 3)) expect(await run(command)).toMatchObject({ code: 0, err: '' })
    const { out } = await run(['check'])
    expect(out).toContain(
      `ok      user                       nobody (id 65534) of ${join(folder.path, 'queue')}: files are read as this user`,
    )
    expect(out).toMatch(/^ok {6}queue +0 messages$/m)
    // The look-ups fail here, and no file does.
    expect([65, 75]).toContain((await run(['check', 'domain', 'far.example'])).code)
    const others = readdirSync(join(folder.path, 'queue')).filter((name) => statSync(join(folder.path, 'queue', name)).uid !== NOBODY.uid)
    expect(others).toEqual([])
  })

  test('finds a queue folder and a configuration that the daemon cannot reach', async () => {
    const queue = await ownedQueue()
    const file = join(folder.path, 'deferd.toml')
    writeFileSync(file, `queue_directory = "${queue}"\nsmtpd_listen = "127.0.0.1:0"\nrelayhost = "[127.0.0.1]:9"\n`, { mode: 0o600 })
    const check = (path: string): Promise<Ended> => folder.run(['check', '--config', path], {}, { isConfigured: true }).ended
    expect(await check(file)).toMatchObject({
      code: 78,
      out: expect.stringContaining(`${file}: the user of the daemon cannot read it`) as string,
    })
    // A relative path is a draft.
    const draft = await check('deferd.toml')
    expect(draft).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^warning configuration .*the user of the daemon cannot read it/m) as string,
    })
    chmodSync(file, 0o644)
    expect(await check(file)).toMatchObject({ code: 0, err: '' })
    chmodSync(folder.path, 0o700)
    const hidden = await check(file)
    expect(hidden.code).toBe(78)
    expect(hidden.out).toMatch(/^error {3}queue folder .*EACCES/m)
  })

  test('is told to run the daemon as its user, and not to give the folder away', async () => {
    await ownedQueue()
    const { code, err } = await folder.run(['start']).ended
    expect(code).toBe(78)
    expect(err).toContain('belongs to the user with id 65534, and the daemon runs as 0: run deferd as the owner')
    expect(err).not.toContain('chown')
  })

  test('gives new keys of dkim generate to the daemon, which reads them', async () => {
    const queue = await ownedQueue()
    const keys = join(folder.path, 'keys/dkim')
    const made = await folder.run(['dkim', 'generate', 'us.example', '--type', 'ed25519', '--selector', 's1', '--directory', keys]).ended
    expect(made).toMatchObject({ code: 0, err: '' })
    for (const path of [join(folder.path, 'keys'), keys, join(keys, 'us.example.s1.pem')])
      expect([path, statSync(path).uid]).toEqual([path, NOBODY.uid])
    const file = join(folder.path, 'deferd.toml')
    const table = `[dkim."us.example"]\nkeys = ["s1:${join(keys, 'us.example.s1.pem')}"]\n`
    writeFileSync(file, `queue_directory = "${queue}"\nsmtpd_listen = "127.0.0.1:0"\nrelayhost = "[127.0.0.1]:9"\n${table}`)
    expect(await folder.run(['check', '--config', file], {}, { isConfigured: true }).ended).toMatchObject({ code: 0, err: '' })
  })

  test('calls a command as another user from a folder that this user cannot read', async () => {
    writeFileSync(join(folder.path, 'deferd.toml'), 'mail_name = "secret"\n', { mode: 0o600 })
    const name = (user: { readonly uid?: number; readonly gid?: number }): Promise<Ended> =>
      folder.run(['config', 'mail_name'], {}, { isConfigured: true, env: { PATH: process.env['PATH'] }, ...user }).ended
    expect(await name(NOBODY)).toMatchObject({ code: 78, err: expect.stringContaining('deferd.toml: cannot be read: EACCES') as string })
    chmodSync(folder.path, 0o700)
    expect(await name(NOBODY)).toMatchObject({ code: 0, out: 'mail_name = Deferd\n', err: '' })
  })
})

test('a reload that is refused is an error of the command, with the reason', async () => {
  const file = join(folder.path, 'deferd.toml')
  const settings = `queue_directory = "${join(folder.path, 'queue')}"\nsmtpd_listen = "127.0.0.1:0"\nrelayhost = "[127.0.0.1]:9"\n`
  writeFileSync(file, settings)
  const run = (command: string) => folder.run([command, '--config', file], {}, { isConfigured: true })
  expect(await run('reload').ended).toMatchObject({
    code: 69,
    err: expect.stringContaining('no daemon runs with queue_directory') as string,
  })
  const daemon = run('start')
  await daemon.prints('queue directory')
  expect(await run('reload').ended).toEqual({ code: 0, out: '', err: '' })
  await daemon.prints('reload -- version')

  // The command accepts the configuration, and the daemon cannot read a file of it.
  writeFileSync(file, `${settings}smtp_tls_CAfile = "${join(folder.path, 'none')}"\n`)
  const refused = await run('reload').ended
  expect(refused).toMatchObject({ code: 78, out: '' })
  expect(refused.err).toMatch(/^deferd: .*deferd\.toml:4: smtp_tls_CAfile: cannot read .*ENOENT.*\n$/)
  await daemon.prints('reload failed, the old configuration stays in effect: ')
  writeFileSync(file, 'nonsense')
  expect(await run('reload').ended).toMatchObject({ code: 78, err: expect.stringContaining('deferd.toml:1: ') as string })
  rmSync(file)
  expect((await run('reload').ended).code).toBe(78)
  daemon.child.kill('SIGTERM')
  expect((await daemon.ended).code).toBe(0)
})
