// Java's azure-storage-file-share against the Files service. The end says how many checks failed.
// With the word "handles" it looks for the handle of a gateway on share/held, and closes it.

import com.azure.core.http.policy.HttpPipelinePolicy;
import com.azure.core.util.Context;
import com.azure.core.util.UrlBuilder;
import com.azure.storage.common.StorageSharedKeyCredential;
import com.azure.storage.common.policy.RequestRetryOptions;
import com.azure.storage.common.policy.RetryPolicyType;
import com.azure.storage.common.sas.AccountSasPermission;
import com.azure.storage.common.sas.AccountSasResourceType;
import com.azure.storage.common.sas.AccountSasService;
import com.azure.storage.common.sas.AccountSasSignatureValues;
import com.azure.storage.file.share.FileSmbProperties;
import com.azure.storage.file.share.ShareClient;
import com.azure.storage.file.share.ShareDirectoryClient;
import com.azure.storage.file.share.ShareFileClient;
import com.azure.storage.file.share.ShareServiceClient;
import com.azure.storage.file.share.ShareServiceClientBuilder;
import com.azure.storage.file.share.models.ListSharesOptions;
import com.azure.storage.file.share.models.NtfsFileAttributes;
import com.azure.storage.file.share.models.ShareAccessPolicy;
import com.azure.storage.file.share.models.ShareAccessTier;
import com.azure.storage.file.share.models.ShareFileHttpHeaders;
import com.azure.storage.file.share.models.ShareFileItem;
import com.azure.storage.file.share.models.ShareFileRange;
import com.azure.storage.file.share.models.ShareFileUploadRangeOptions;
import com.azure.storage.file.share.models.ShareSignedIdentifier;
import com.azure.storage.file.share.models.ShareStorageException;
import com.azure.storage.file.share.options.ShareCreateOptions;
import com.azure.storage.file.share.options.ShareFileRenameOptions;
import com.azure.storage.file.share.options.ShareListFilesAndDirectoriesOptions;
import com.azure.storage.file.share.options.ShareSetPropertiesOptions;
import com.azure.storage.file.share.sas.ShareFileSasPermission;
import com.azure.storage.file.share.sas.ShareSasPermission;
import com.azure.storage.file.share.sas.ShareServiceSasSignatureValues;
import com.azure.storage.file.share.specialized.ShareLeaseClientBuilder;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Random;

public final class Files {
  interface Work {
    void run() throws Exception;
  }

  static final String account = System.getenv("STAMP_ACCOUNT");
  static final int port = URI.create(System.getenv("STAMP_FILE_ENDPOINT")).getPort();
  static final ShareServiceClient service = builder()
      .credential(new StorageSharedKeyCredential(account, System.getenv("STAMP_KEY")))
      .buildClient();
  static final String name = "java-" + ProcessHandle.current().pid();
  static final ShareClient share = service.getShareClient(name);
  static final byte[] large = new byte[9_000_000];
  static final long tebibyte = 1L << 40;
  static int failed;

  public static void main(String[] words) {
    new Random(1).nextBytes(large);
    if (words.length > 0) check("handles: refuse REST, are listed, are closed by force", Files::handles);
    else all();
    System.out.println(failed == 0 ? "all passed" : failed + " failed");
    System.exit(failed == 0 ? 0 : 1);
  }

  static void all() {
    check("shares: create, properties, quota, metadata, tier, statistics, list, not twice", Files::shares);
    check("shares: access policy and lease", Files::policies);
    check("directories: create, properties, attributes, times, names in any case, delete", Files::directories);
    check("lists: pages, prefix, extended information, names as they were written", Files::lists);
    check("files: a large one up and down, a part, a stream", Files::content);
    check("files: a sparse one of 1 TiB, ranges, clear, resize", Files::sparse);
    check("files: headers, attributes, times, metadata, lease", Files::properties);
    check("files: copy, range from a URL", Files::copies);
    check("renames of files and directories", Files::renames);
    check("permissions: create, get, by key", Files::permissions);
    check("handles: none, and none closed", Files::noHandles);
    check("signatures: of the account, of a share, of a policy, of a file", Files::signatures);
    check("snapshots of shares and links are refused by name", Files::refusals);
    check("shares: delete", Files::removal);
  }

  /** The SDK takes scheme and host of an endpoint only. A policy puts the port back. */
  static ShareServiceClientBuilder builder() {
    RequestRetryOptions once = new RequestRetryOptions(RetryPolicyType.FIXED, 1, (Integer) null, null, null, null);
    HttpPipelinePolicy withPort = (call, next) -> {
      call.getHttpRequest().setUrl(UrlBuilder.parse(call.getHttpRequest().getUrl()).setPort(port).toString());
      return next.process();
    };
    String endpoint = "http://" + account + ".file.localhost";
    return new ShareServiceClientBuilder().endpoint(endpoint).retryOptions(once).addPolicy(withPort);
  }

  static void check(String what, Work work) {
    try {
      work.run();
      System.out.println("passed  " + what);
    } catch (Throwable error) {
      failed++;
      System.out.println("failed  " + what + ": " + error);
      error.printStackTrace();
    }
  }

  static void same(Object told, Object due) {
    if (!due.equals(told)) throw new AssertionError("told " + told + ", not " + due);
  }

  /** Status and code of the refusal of a request. */
  static String refusal(Work work) throws Exception {
    try {
      work.run();
      return "none";
    } catch (ShareStorageException error) {
      return error.getStatusCode() + " " + error.getErrorCode();
    }
  }

  static OffsetDateTime inAnHour() {
    return OffsetDateTime.now(ZoneOffset.UTC).plusHours(1);
  }

  static void put(ShareFileClient file, long offset, String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    ByteArrayInputStream stream = new ByteArrayInputStream(bytes);
    var options = new ShareFileUploadRangeOptions(stream, bytes.length).setOffset(offset);
    file.uploadRangeWithResponse(options, null, Context.NONE);
  }

  static ShareFileClient make(ShareDirectoryClient directory, String file, String text) {
    ShareFileClient made = directory.createFile(file, text.getBytes(StandardCharsets.UTF_8).length);
    if (!text.isEmpty()) put(made, 0, text);
    return made;
  }

  static String text(ShareFileClient file) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    file.download(bytes);
    return bytes.toString(StandardCharsets.UTF_8);
  }

  static byte[] part(ShareFileClient file, long first, long last) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    file.downloadWithResponse(bytes, new ShareFileRange(first, last), null, null, Context.NONE);
    return bytes.toByteArray();
  }

  static void shares() throws Exception {
    ShareCreateOptions options = new ShareCreateOptions().setQuotaInGb(5).setMetadata(Map.of("a", "b"));
    share.createWithResponse(options, null, Context.NONE);
    same(refusal(share::create), "409 ShareAlreadyExists");
    share.setProperties(new ShareSetPropertiesOptions().setQuotaInGb(7).setAccessTier(ShareAccessTier.HOT));
    same(share.getProperties().getQuota(), 7);
    same(share.getProperties().getAccessTier(), "Hot");
    same(share.getProperties().getMetadata(), Map.of("a", "b"));
    same(share.getStatistics().getShareUsageInBytes(), 0L);
    ListSharesOptions listed = new ListSharesOptions().setPrefix(name).setIncludeMetadata(true);
    service.listShares(listed, null, Context.NONE).forEach(one -> same(one.getMetadata(), Map.of("a", "b")));
    same(service.listShares(listed, null, Context.NONE).stream().count(), 1L);
    same(service.getProperties().getCors().size(), 0);
  }

  static ShareSignedIdentifier policy(String id) {
    ShareAccessPolicy policy = new ShareAccessPolicy().setPermissions("r").setExpiresOn(inAnHour());
    return new ShareSignedIdentifier().setId(id).setAccessPolicy(policy);
  }

  static void policies() throws Exception {
    share.setAccessPolicy(List.of(policy("one")));
    same(share.getAccessPolicy().stream().map(ShareSignedIdentifier::getId).toList(), List.of("one"));
    var lease = new ShareLeaseClientBuilder().shareClient(share).buildClient();
    lease.acquireLease();
    same(refusal(share::delete), "412 LeaseIdMissing");
    lease.renewLease();
    lease.releaseLease();
  }

  static void directories() throws Exception {
    ShareDirectoryClient directory = share.getDirectoryClient("Dir");
    OffsetDateTime then = OffsetDateTime.of(2020, 1, 2, 3, 4, 5, 123_456_700, ZoneOffset.UTC);
    var readOnly = EnumSet.of(NtfsFileAttributes.DIRECTORY, NtfsFileAttributes.READ_ONLY);
    FileSmbProperties smb = new FileSmbProperties().setNtfsFileAttributes(readOnly).setFileCreationTime(then);
    directory.createWithResponse(smb, null, Map.of("x", "1"), null, Context.NONE);
    var told = share.getDirectoryClient("DIR").getProperties();
    same(told.getMetadata(), Map.of("x", "1"));
    same(told.getSmbProperties().getNtfsFileAttributes(), readOnly);
    same(told.getSmbProperties().getFileCreationTime(), then);
    directory.setMetadata(Map.of("y", "2"));
    var plain = EnumSet.of(NtfsFileAttributes.DIRECTORY);
    directory.setProperties(new FileSmbProperties().setNtfsFileAttributes(plain), null);
    same(directory.getProperties().getSmbProperties().getNtfsFileAttributes(), plain);
    directory.createSubdirectory("sub");
    same(refusal(directory::delete), "409 DirectoryNotEmpty");
    same(refusal(directory::create), "409 ResourceAlreadyExists");
    same(refusal(() -> share.createDirectory("no/where")), "404 ParentNotFound");
    directory.deleteSubdirectory("sub");
    directory.delete();
    same(directory.exists(), false);
    same(directory.deleteIfExists(), false);
  }

  static void lists() {
    ShareDirectoryClient directory = share.createDirectory("list");
    List<String> names = List.of("B", "a", "d c", "e%20f", "g+h", "\u00fc & x");
    for (String one : names) make(directory, one, one);
    directory.createSubdirectory("Sub");
    for (int size : new int[] {2, 5000}) {
      var options = new ShareListFilesAndDirectoriesOptions().setMaxResultsPerPage(size);
      var told = new ArrayList<String>();
      directory.listFilesAndDirectories(options, null, Context.NONE).forEach(one -> told.add(one.getName()));
      told.sort(null);
      var due = new ArrayList<>(names);
      due.add("Sub");
      due.sort(null);
      same(told, due);
    }
    var rich = new ShareListFilesAndDirectoriesOptions().setPrefix("d").setIncludeExtendedInfo(true)
        .setIncludeTimestamps(true).setIncludeETag(true).setIncludeAttributes(true).setIncludePermissionKey(true);
    ShareFileItem one = directory.listFilesAndDirectories(rich, null, Context.NONE).stream().findFirst().orElseThrow();
    same(one.getName() + " " + one.getFileSize(), "d c 3");
    same(one.getId() != null && one.getProperties().getLastAccessedOn() != null, true);
    same(text(share.getFileClient("LIST/b")), "B");
    for (String each : names) same(text(directory.getFileClient(each)), each);
  }

  static void content() throws IOException {
    ShareFileClient file = share.createFile("large", large.length);
    file.upload(new ByteArrayInputStream(large), large.length, null);
    ByteArrayOutputStream back = new ByteArrayOutputStream();
    file.download(back);
    same(Arrays.equals(back.toByteArray(), large), true);
    same(Arrays.equals(part(file, 5_000_000, 5_000_999), Arrays.copyOfRange(large, 5_000_000, 5_001_000)), true);
    try (var stream = file.openInputStream()) {
      same(Arrays.equals(stream.readAllBytes(), large), true);
    }
    ShareFileClient streamed = share.createFile("streamed", 11);
    try (var stream = streamed.getFileOutputStream()) {
      stream.write("hello world".getBytes(StandardCharsets.UTF_8));
    }
    same(text(streamed), "hello world");
  }

  static void sparse() throws Exception {
    ShareFileClient file = share.createFile("sparse", tebibyte);
    put(file, tebibyte - 3, "end");
    put(file, 0, "x".repeat(2048));
    file.clearRangeWithResponse(512, 512, null, Context.NONE);
    List<String> told = file.listRanges().stream().map(range -> range.getStart() + "-" + range.getEnd()).toList();
    same(told.subList(0, 2), List.of("0-511", "1024-2047"));
    same(told.get(told.size() - 1).endsWith("-" + (tebibyte - 1)), true);
    same(Arrays.equals(part(file, tebibyte - 4, tebibyte - 1), new byte[] {0, 'e', 'n', 'd'}), true);
    file.setProperties(100, null, null, null);
    same(file.getProperties().getContentLength(), 100L);
    same(refusal(() -> put(file, 95, "0123456789")), "416 InvalidRange");
  }

  static void properties() throws Exception {
    OffsetDateTime then = OffsetDateTime.of(2021, 3, 4, 5, 6, 7, 0, ZoneOffset.UTC);
    var hidden = EnumSet.of(NtfsFileAttributes.HIDDEN);
    FileSmbProperties smb = new FileSmbProperties().setNtfsFileAttributes(hidden).setFileLastWriteTime(then);
    ShareFileHttpHeaders headers = new ShareFileHttpHeaders().setContentType("text/x").setCacheControl("no");
    ShareFileClient file = share.getFileClient("meta");
    file.createWithResponse(10, headers, smb, null, Map.of("k", "v"), null, Context.NONE);
    var told = file.getProperties();
    same(told.getContentType() + " " + told.getCacheControl(), "text/x no");
    same(told.getMetadata(), Map.of("k", "v"));
    same(told.getSmbProperties().getNtfsFileAttributes(), hidden);
    same(told.getSmbProperties().getFileLastWriteTime(), then);
    file.setMetadata(Map.of("z", "1"));
    same(file.getProperties().getMetadata(), Map.of("z", "1"));
    var lease = new ShareLeaseClientBuilder().fileClient(file).buildClient();
    lease.acquireLease();
    same(refusal(() -> put(file, 0, "1")), "412 LeaseIdMissing");
    lease.breakLease();
    file.delete();
    same(refusal(file::getProperties), "404 ResourceNotFound");
  }

  /** URL of a file for the stamp, which finds nothing at the default port. */
  static String url(ShareFileClient file) {
    return UrlBuilder.parse(file.getFileUrl()).setPort(port).toString();
  }

  static void copies() {
    ShareFileClient source = share.getFileClient("large");
    ShareFileClient copy = share.getFileClient("copy");
    var poller = copy.beginCopy(url(source), Map.of("c", "1"), Duration.ofMillis(100));
    same(poller.waitForCompletion(Duration.ofSeconds(60)).getValue().getCopyStatus().toString(), "success");
    same(copy.getProperties().getContentLength(), (long) large.length);
    var reads = new ShareFileSasPermission().setReadPermission(true);
    var signature = new ShareServiceSasSignatureValues(inAnHour(), reads);
    String signed = url(source) + "?" + source.generateSas(signature);
    ShareFileClient target = share.createFile("part", 1000);
    target.uploadRangeFromUrl(1000, 0, 2000, signed);
    same(Arrays.equals(part(target, 0, 999), Arrays.copyOfRange(large, 2000, 3000)), true);
  }

  static void renames() throws Exception {
    ShareDirectoryClient from = share.createDirectory("from");
    make(from, "a", "a");
    make(from, "b", "b");
    ShareDirectoryClient to = from.rename("to");
    ShareFileClient file = to.getFileClient("a");
    same(text(file), "a");
    same(refusal(() -> file.rename("to/b")), "409 ResourceAlreadyExists");
    file.renameWithResponse(new ShareFileRenameOptions("to/b").setReplaceIfExists(true), null, Context.NONE);
    same(text(share.getFileClient("to/b")), "a");
    same(from.exists(), false);
  }

  static void permissions() {
    String sddl = "O:SYG:SYD:(A;;FA;;;SY)";
    String key = share.createPermission(sddl);
    same(share.getPermission(key), sddl);
    ShareFileClient file = share.getFileClient("allowed");
    file.createWithResponse(1, null, new FileSmbProperties().setFilePermissionKey(key), null, null, null, Context.NONE);
    same(file.getProperties().getSmbProperties().getFilePermissionKey(), key);
  }

  static void noHandles() {
    ShareDirectoryClient root = share.getRootDirectoryClient();
    same(root.listHandles(null, true, null, Context.NONE).stream().count(), 0L);
    same(root.forceCloseAllHandles(true, null, Context.NONE).getClosedHandles(), 0);
    same(share.getFileClient("large").forceCloseHandle("1").getClosedHandles(), 0);
  }

  static void handles() throws Exception {
    ShareFileClient held = service.getShareClient("share").getFileClient("held");
    same(refusal(() -> put(held, 0, "1")), "409 SharingViolation");
    var one = held.listHandles().stream().findFirst().orElseThrow();
    same(one.getPath() + " " + one.getClientIp() + " " + one.getAccessRights(), "held 10.0.0.7 [Read, Write]");
    var below = service.getShareClient("share").getRootDirectoryClient().listHandles(null, true, null, Context.NONE);
    same(below.stream().findFirst().orElseThrow().getHandleId(), one.getHandleId());
    same(held.forceCloseHandle(one.getHandleId()).getClosedHandles(), 1);
    same(held.listHandles().stream().count(), 0L);
    put(held, 0, "1");
  }

  static ShareFileClient signed(String signature, String path) {
    return builder().sasToken(signature).buildClient().getShareClient(name).getFileClient(path);
  }

  static void signatures() throws Exception {
    var rights = new AccountSasSignatureValues(inAnHour(), AccountSasPermission.parse("rl"),
        new AccountSasService().setFileAccess(true), AccountSasResourceType.parse("sco"));
    var listed = builder().sasToken(service.generateAccountSas(rights)).buildClient().listShares();
    same(listed.stream().anyMatch(one -> one.getName().equals(name)), true);
    var reads = new ShareServiceSasSignatureValues(inAnHour(), new ShareSasPermission().setReadPermission(true));
    ShareFileClient reader = signed(share.generateSas(reads), "list/B");
    same(text(reader), "B");
    same(refusal(() -> put(reader, 0, "C")), "403 AuthorizationPermissionMismatch");
    share.setAccessPolicy(List.of(policy("two")));
    same(text(signed(share.generateSas(new ShareServiceSasSignatureValues("two")), "list/B")), "B");
    var writes = new ShareServiceSasSignatureValues(inAnHour(), new ShareFileSasPermission().setWritePermission(true));
    put(signed(share.getFileClient("list/B").generateSas(writes), "list/B"), 0, "D");
    same(text(share.getFileClient("list/B")), "D");
  }

  static void refusals() throws Exception {
    same(refusal(share::createSnapshot).substring(0, 3), "501");
    same(refusal(() -> share.getFileClient("hard").createHardLink("list/B")).substring(0, 3), "501");
    same(refusal(() -> share.getFileClient("soft").createSymbolicLink("list/B")).substring(0, 3), "501");
  }

  static void removal() throws Exception {
    share.delete();
    same(refusal(share::getProperties), "404 ShareNotFound");
    same(share.exists(), false);
  }
}
