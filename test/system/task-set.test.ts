import { expect, test } from 'vitest'
import { TaskSet } from '../../src/system/task-set.ts'

const rethrow = (error: unknown): void => {
  throw error
}

test('is settled at once when no task is under way', async () => {
  await new TaskSet(rethrow).settled()
})

test('is settled only after the tasks that others added while they ran', async () => {
  const tasks = new TaskSet(rethrow)
  const ended: string[] = []
  const task = async (name: string, then?: () => void) => {
    await new Promise((resolve) => setImmediate(resolve))
    ended.push(name)
    then?.()
  }
  tasks.add(task('first', () => tasks.add(task('second', () => tasks.add(task('third'))))))
  await tasks.settled()
  expect(ended).toEqual(['first', 'second', 'third'])
})

test('hands errors to its policy and goes on', async () => {
  const errors: unknown[] = []
  const tasks = new TaskSet((error) => errors.push(error))
  tasks.add(Promise.reject(new Error('disk full')))
  tasks.add(Promise.resolve())
  await tasks.settled()
  expect(errors).toEqual([new Error('disk full')])
})

test('an error that its policy throws on reaches whoever waits', async () => {
  const tasks = new TaskSet(rethrow)
  tasks.add(Promise.reject(new TypeError('a bug')))
  await expect(tasks.settled()).rejects.toThrow('a bug')
  await tasks.settled()
})
