/** Members that several resources have. Times are seconds since 1970 with a fraction. */
import { z } from 'zod'
import { FAILURE_CLASSES, failureClass as classOf } from '../mail/failure-class.ts'
import { hintOf } from '../mail/login-refusal.ts'
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import type { QueueTime, WallView } from '../system/wall-view.ts'

/** Value of a shape, which nobody changes. A presenter returns it, so that the compiler compares both. */
export type Json<Shape extends z.ZodType> = Unchanged<z.output<Shape>>

type Unchanged<T> = T extends readonly (infer One)[]
  ? readonly Unchanged<One>[]
  : T extends object
    ? { readonly [Member in keyof T]: Unchanged<T[Member]> }
    : T

export const time = z.number().describe('seconds since 1970')
export const timeOrNull = time.nullable()
/** Time of an arrival. */
export const wholeTimeShape = z.int().describe('seconds since 1970')

/** The shapes of times, and those made of them. */
const times = z.registry<{ readonly unit: 's' }>()
for (const shape of [time, wholeTimeShape]) times.add(shape, { unit: 's' })

/** True for a member that is a time. */
export const isTime = (shape: z.core.$ZodType): boolean =>
  shape instanceof z.ZodNullable || shape instanceof z.ZodOptional ? isTime(shape.unwrap()) : times.get(shape) !== undefined

export const textOrNull = z.string().nullable()
export const count = z.int().min(0)

/** Time of an arrival, in whole seconds as Postfix has it. */
export const wholeTime = (at: QueueTime, wall: WallView): number => Math.floor(wall.seconds(at))

export const next = z.string().nullable().describe('cursor of the next page; null after the last one')

export const failureClass = z.enum(FAILURE_CLASSES).describe('class of the failure; see docs/deliverability.md')

export const hint = textOrNull.describe('what an operator has to do, for refusals that concern the login of this relay')

export const failure = { class: failureClass.nullable(), hint }

/** Class and hint of a failure; null without one. */
export const failureJson = (status: DeliveryStatus | null) => ({
  class: status === null ? null : classOf(status).class,
  hint: hintOf(status),
})
