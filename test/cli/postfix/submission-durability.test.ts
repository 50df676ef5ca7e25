/** Exit code 0 of `sendmail` means that a power cut does not lose the message. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { prepareMaildrop, type SubmissionFiles } from '../../../src/queue/intake/maildrop-writer.ts'
import { Operator } from '../../support/operator.ts'
import { fileNow, VolatileDisk } from '../../support/volatile-disk.ts'

let operator: Operator
beforeEach(async () => {
  operator = new Operator()
  await prepareMaildrop(operator.directory)
})
afterEach(() => operator.leave())

const drop = () => join(operator.directory, 'maildrop')

const send = (files: SubmissionFiles) =>
  operator.run(['sendmail', 'ann@far.example'], {
    stdin: 'Subject: hi\n\nbody\n',
    env: { DEFERD_SMTPD_LISTEN: '127.0.0.1:1' },
    files,
  })

test('sendmail ends with 0 after the file and its folder are synced', async () => {
  const disk = new VolatileDisk()
  expect(await send(disk)).toMatchObject({ code: 0, err: '' })
  const leftByPowerCut = new Map(disk.durable)
  const [name = ''] = readdirSync(drop())
  expect(leftByPowerCut).toEqual(new Map([[name, await fileNow(join(drop(), name))]]))
  expect(leftByPowerCut.get(name)).toMatchObject({ mode: 0o644, bytes: expect.stringMatching(/\r\n\r\nbody\r\n$/) as string })
})

test('a file is marked complete after its content is synced', async () => {
  const disk = new VolatileDisk()
  const marked: boolean[] = []
  const open: SubmissionFiles['open'] = async (...args) => {
    const handle = await disk.open(...args)
    const chmod = handle.chmod.bind(handle)
    let syncs = 0
    const sync = handle.sync.bind(handle)
    handle.sync = async () => {
      await sync()
      syncs++
    }
    handle.chmod = (mode) => {
      marked.push(syncs > 0)
      return chmod(mode)
    }
    return handle
  }
  expect(await send({ open, rm: disk.rm })).toMatchObject({ code: 0 })
  expect(marked).toEqual([true])
})

test.each(['sync file', 'sync folder'])('sendmail ends with 75 and leaves no file when it cannot %s', async (call) => {
  const { code, err } = await send(new VolatileDisk({ [call]: 'EIO' }))
  expect([code, err]).toEqual([75, expect.stringContaining('cannot queue mail: EIO')])
  expect(readdirSync(drop())).toEqual([])
})

test('a user who cannot open the folder relies on the sync of the file', async () => {
  expect(await send(new VolatileDisk({ 'open folder': 'EACCES' }))).toMatchObject({ code: 0, err: '' })
  expect(readdirSync(drop())).toHaveLength(1)
})
