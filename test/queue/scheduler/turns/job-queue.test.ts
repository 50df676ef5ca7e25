import { describe, expect, test } from 'vitest'
import type { DeliveryRequest } from '../../../../src/mail/message.ts'
import { JobQueue, type Job } from '../../../../src/queue/scheduler/turns/job-queue.ts'

function job(id: number, fresh: boolean, recipients = 1): Job {
  const request: DeliveryRequest = {
    message: { id, createdAt: 0, arrivedAt: 0, sender: '', size: 1, contentId: id, smtputf8: false },
    destination: 'far.example',
    recipients: Array.from({ length: recipients }, (_, position) => ({
      id: id * 1000 + position,
      address: 'ann@far.example',
      dueAt: 0,
      expiresAt: 1,
      steps: 0,
      attempts: 0,
      last: null,
      warnings: 0,
      flushed: false,
    })),
    fresh,
    forcedExpire: false,
    lease: { owner: 1, until: Infinity },
  }
  return { request, activatedAt: 0, band: 0, share: '' }
}

const ids = (jobs: readonly Job[]) => jobs.map(({ request }) => request.message.id)

describe('jobs of one destination', () => {
  test('new mail and retries take turns, new mail first; each first in, first out', () => {
    const queue = new JobQueue()
    for (const [id, fresh] of [
      [1, false],
      [2, false],
      [3, true],
      [4, true],
      [5, true],
    ] as const)
      queue.push(job(id, fresh))
    expect(ids(queue.drain())).toEqual([3, 1, 4, 2, 5])
  })

  test('one kind alone does not wait for the other', () => {
    const queue = new JobQueue()
    for (const id of [1, 2, 3]) queue.push(job(id, false))
    expect(ids(queue.drain())).toEqual([1, 2, 3])
  })

  test('a job taken out of turn is passed over, and the turn does not change', () => {
    const queue = new JobQueue()
    const jobs = [job(1, true), job(2, true), job(3, false), job(4, true)]
    for (const one of jobs) queue.push(one)
    queue.take(jobs[1] as Job)
    expect(ids(queue.drain())).toEqual([1, 3, 4])
  })

  test('counts jobs and their recipients', () => {
    const queue = new JobQueue()
    const jobs = [job(1, true, 3), job(2, false, 4)]
    for (const one of jobs) queue.push(one)
    expect([queue.size, queue.recipients]).toEqual([2, 7])
    queue.take(jobs[0] as Job)
    expect([queue.size, queue.recipients]).toEqual([1, 4])
    expect(ids(queue.drain())).toEqual([2])
    expect([queue.size, queue.recipients, queue.peek()]).toEqual([0, 0, undefined])
  })

  test('twenty thousand jobs are taken in linear time', () => {
    const queue = new JobQueue()
    for (let id = 1; id <= 20_000; id++) queue.push(job(id, id % 2 === 0, 0))
    expect(queue.drain()).toHaveLength(20_000)
  })
})
