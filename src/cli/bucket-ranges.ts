/** Ranges of buckets, as configurations give a group its part of a namespace's names. */
import * as z from 'zod';
import { mustBe } from '../api/issues.ts';
import { BUCKETS } from '../api/limits.ts';

const BUCKET_RANGE = /^([0-9]{1,4})-([0-9]{1,4})$/;

export const bucketRange = z.string().refine(
  (text) => {
    const { from, to } = parseRange(text);
    return from <= to && to < BUCKETS;
  },
  mustBe(`a range of buckets, from-to, within 0-${BUCKETS - 1}`),
);

/** Both ends included. */
interface BucketRange {
  readonly from: number;
  readonly to: number;
}

/** `text` has passed the schema. */
function parseRange(text: string): BucketRange {
  const match = BUCKET_RANGE.exec(text);
  return { from: Number(match?.[1]), to: Number(match?.[2]) };
}

/** Whether a bucket is in one of them: by one bit for each bucket, since each acquire asks. `ranges` have passed the schema. */
export function bucketsIn(ranges: readonly string[]): (bucket: number) => boolean {
  const isIn = new Uint8Array(BUCKETS);
  for (const { from, to } of ranges.map(parseRange)) isIn.fill(1, from, to + 1);
  return (bucket) => isIn[bucket] === 1;
}
