/**
 * Carriage returns in texts of messages. Servers write them as references, which the SDK's XML parser does not know, and the SDK writes them as they
 * are, which parsers take for an end of a line.
 */
import type { RequestPolicyFactory } from "@azure/storage-queue";

/** Stands for a carriage return until the SDK has parsed the answer: no XML has this character. */
const mark = "\uFFFF";

/** Returns the text as the server has it, of one that the SDK gave. */
export const withReturns = (text: string): string => text.replaceAll(mark, "\r");

/** Writes carriage returns as references, and marks those of answers. */
export const returnPolicy: RequestPolicyFactory = {
  create: (next) => ({
    async sendRequest(request) {
      if (typeof request.body === "string") request.body = request.body.replaceAll("\r", "&#xD;");
      const answer = await next.sendRequest(request);
      if (typeof answer.bodyAsText === "string") answer.bodyAsText = answer.bodyAsText.replaceAll(/&#(?:x0*d|0*13);/gi, mark);
      return answer;
    },
  }),
};
