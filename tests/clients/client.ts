// SPDX-License-Identifier: Apache-2.0
// Submits a job with the generated client and reads its run and its output.
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const api = createClient<paths>({
	baseUrl: process.env.URL,
	headers: { Authorization: `Bearer ${process.env.TOKEN}` },
});

function check(condition: unknown, what: string): asserts condition {
	if (!condition)
		throw new Error(what);
	console.log("ok - " + what);
}

const added = await api.POST("/v1/jobs", { body: { name: "generated", command: ["echo", "hello"] } });
check(added.response.status === 201 && added.data && "run" in added.data, "a job is submitted");
const run = Number(added.data.run);
const ended = await api.GET("/v1/runs/{run}", { params: { path: { run }, query: { wait: 30 } } });
check(ended.data?.state === "succeeded", "its run is read, with a typed state");
const output = await api.GET("/v1/runs/{run}/output", { params: { path: { run } }, parseAs: "text" });
check(String(output.data) === "hello\n", "its output is read");
const refused = await api.POST("/v1/freeze", {});
check(refused.error?.error.code === "denied", "a refusal has a typed error");
const missing = await api.GET("/v1/jobs/{job}", { params: { path: { job: "none" } } });
check(missing.error?.error.code === "not_found", "a missing job is a typed error");
