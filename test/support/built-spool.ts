/** A Postfix spool of built queue files, without Postfix. */
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PostfixQueue } from '../../src/import/spool/postfix-spool.ts'
import { queueFile, record, type FileParts } from './queue-file-builder.ts'

export class BuiltSpool {
  readonly folder = mkdtempSync(join(tmpdir(), 'deferd-spool-'))
  readonly spool = join(this.folder, 'spool')
  readonly config = join(this.folder, 'etc')

  constructor(mainCf = '') {
    for (const name of ['maildrop', 'incoming', 'active', 'deferred', 'hold', 'defer', 'bounce', 'corrupt', 'pid']) {
      mkdirSync(join(this.spool, name), { recursive: true })
    }
    mkdirSync(this.config)
    writeFileSync(join(this.config, 'main.cf'), `queue_directory = ${this.spool}\nalias_maps =\nmyorigin = origin.example\n${mainCf}`)
    writeFileSync(join(this.config, 'master.cf'), 'smtp inet n - n - - smtpd\nsmtp unix - - n - - smtp\n')
  }

  /** Writes a file and returns its path. `at` is its time in seconds. */
  add(queue: PostfixQueue, id: string, file: Buffer | FileParts = {}, { mode = 0o700, at }: { mode?: number; at?: number } = {}): string {
    const folder = queue === 'deferred' ? join(this.spool, queue, id.charAt(0)) : join(this.spool, queue)
    mkdirSync(folder, { recursive: true })
    const path = join(folder, id)
    writeFileSync(path, Buffer.isBuffer(file) ? file : queueFile(file), { mode })
    if (at !== undefined) utimesSync(path, at, at)
    return path
  }

  log(kind: 'defer' | 'bounce', id: string, text: string, at?: number): void {
    const path = join(this.spool, kind, id)
    writeFileSync(path, text)
    if (at !== undefined) utimesSync(path, at, at)
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** A submission in the maildrop. */
export const submission = (sender: string, recipients: readonly string[], arrival: string): Buffer =>
  Buffer.concat([
    record('T', arrival),
    record('F', 'Ann Other'),
    record('S', sender),
    ...recipients.map((one) => record('R', one)),
    record('M'),
    record('N', 'Subject: submitted'),
    record('N'),
    record('N', 'text'),
    record('X'),
    record('E'),
  ])
