/** A relay as containers run it: configured by variables, secrets from mounted files, one stream of JSON. */
import { spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DaemonFolder } from '../support/started-daemon.ts'

const PROGRAM = join(import.meta.dirname, '../../bin/deferd.js')

let folder: DaemonFolder
beforeEach(() => {
  folder = new DaemonFolder()
})
afterEach(() => folder.close())

test('with log_format = json, all output is JSON, warnings of the configuration and addresses included', async () => {
  const env = { ...process.env, DEFERD_MAIL_NAME_FILE: join(folder.path, 'name'), DEFERD_LOG_FORMAT: 'json' }
  writeFileSync(join(folder.path, 'name'), 'First\n')
  const daemon = folder.run(['start'], { http_listen: '127.0.0.1:0', maximal_queue_lifetime: '1d', bounce_queue_lifetime: '2d' }, { env })
  await daemon.prints('queue directory')
  writeFileSync(join(folder.path, 'name'), 'Second\n')
  expect(await folder.run(['reload'], {}, { env }).ended).toMatchObject({ code: 0 })
  await daemon.prints('reload -- version')
  daemon.child.kill('SIGTERM')
  const { code, out, err } = await daemon.ended
  expect({ code, out }).toEqual({ code: 0, out: '' })
  const records = err
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly text?: string; readonly level: string })
  const texts = records.map(({ text = '' }) => text)
  expect(texts).toContainEqual(expect.stringMatching(/^deferd listens on 127\.0\.0\.1:\d+; queue directory: .*queue; metrics: http:/))
  expect(texts.filter((text) => text.includes('bounce_queue_lifetime is above'))).toHaveLength(2)
})

test.runIf(process.getuid?.() === 0)('secrets on a read-only mount in memory may be readable by all', () => {
  const secrets = join(folder.path, 'secrets')
  mkdirSync(secrets)
  writeFileSync(join(folder.path, 'key.pem'), generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }))
  writeFileSync(join(folder.path, 'passwords'), '[127.0.0.1]:9 user:password\n')
  const config = join(folder.path, 'deferd.toml')
  const settings = [
    `queue_directory = "${join(folder.path, 'queue')}"`,
    'smtpd_listen = "127.0.0.1:0"',
    'relayhost = "[127.0.0.1]:9"',
    'myhostname = "us.example"',
    `smtp_sasl_password_maps = "texthash:${secrets}/passwords"`,
    '[dkim."us.example"]',
    `keys = ["s1:${secrets}/key.pem"]`,
  ]
  writeFileSync(config, settings.join('\n'))
  const mounted = (state: string): string => {
    const script = `mount -t tmpfs none ${secrets} && install -m 0444 ${folder.path}/key.pem ${folder.path}/passwords ${secrets} && mount -o remount,bind,${state} ${secrets} && exec ${process.execPath} ${PROGRAM} check --config ${config}`
    return spawnSync('unshare', ['--mount', 'sh', '-c', script], { encoding: 'utf8' }).stdout
  }
  const read = mounted('ro')
  expect(read).toContain('ok      DKIM keys')
  expect(read).toContain('ok      secrets')
  const changeable = mounted('rw')
  expect(changeable).toContain('other users may read it (mode 444)')
  expect(changeable).toContain('passwords is readable by every local user')
})
